import { Argument, type Command, Option } from 'commander'
import {
  appToken,
  businessToken,
  directoryToken,
  type EventName,
  type Marketplace,
  MarketplaceError,
  type Token,
} from '../../index.js'
import { collected, examples, trimmed, webAddress } from '../terminal/command-options.js'
import type { Act, Context } from '../terminal/context.js'
import { DONE, type ExitCode, NO, Stop, stopFor, UNAVAILABLE, USAGE } from '../terminal/exit-codes.js'
import { oneLine, table } from '../terminal/layout.js'
import { NEEDED_EVENTS } from '../terminal/needed-events.js'

type Kind = 'app' | 'business' | 'directory'

interface RegisterOptions {
  business?: string
  event?: string[]
  tokenKind: Kind
}

interface Registered {
  event: string
  status: 'created' | 'exists' | 'failed'
  code: string | null
  why: string | null
}

export function addRegister(program: Command, act: Act) {
  program
    .command('register')
    .summary("register the app's address with the platform")
    .description(
      "Register the app's address with the platform, by default for the four events that the gate needs. An address that " +
        'is already registered is a success. It uses no database. Put a token of another kind into MARKETPLACE_TOKEN.',
    )
    .addArgument(
      new Argument('<url>', 'the mount address of the router; the delivery secret is appended').argParser(
        webAddress,
      ),
    )
    .option('--business <uid>', 'any business that has the app', trimmed)
    .option('--event <name>', 'an event instead of the four; may be repeated', collected)
    .addOption(
      new Option('--token-kind <kind>', 'the kind of token in MARKETPLACE_TOKEN')
        .choices(['app', 'business', 'directory'])
        .default('app'),
    )
    .addHelpText(
      'after',
      examples(
        'register https://app.example/hooks --business b1',
        'register https://app.example/hooks \\\n      --token-kind directory --event app_subscription/installed',
      ),
    )
    .action(
      act(async (context, url: string, given: RegisterOptions) => {
        const { out } = context
        const marketplace = await context.create({ store: 'sqlite::memory:', worker: false })
        const targetUrl = marketplace.webhooks.targetUrl(url)
        const events = given.event ?? NEEDED_EVENTS
        const unknown = events.filter((event) => !(event in marketplace.webhooks.events))
        if (unknown.length > 0)
          throw new Stop(USAGE, `Unknown event: ${oneLine(unknown.join(', '))}`, {
            fix: `The events are ${Object.keys(marketplace.webhooks.events).join(', ')}.`,
          })
        if (!url.startsWith('https:'))
          out.warning('the address is not https, so the delivery secret is sent without encryption')
        const token = await tokenFor(context, marketplace, given)
        out.hide([token.value])
        const results: Registered[] = []
        for (const event of events)
          results.push(await register(marketplace, { event: event as EventName, targetUrl, token }))
        out.result({ registered: results }, () =>
          table(
            [
              { title: 'STATUS', cell: ({ status }) => status, paint: paintStatus },
              { title: 'EVENT', cell: ({ event }) => event },
              { title: '', cell: ({ why }) => why ?? '' },
            ],
            results,
            out.width,
          ),
        )
        return exitCodeFor(results)

        function paintStatus(text: string, { status }: Registered) {
          return status === 'failed' ? out.paint.bad(text) : out.paint.good(text)
        }
      }),
    )
}

async function tokenFor(
  { env }: Context,
  marketplace: Marketplace,
  { business, tokenKind }: RegisterOptions,
): Promise<Token> {
  const value = env.MARKETPLACE_TOKEN?.trim()
  if (value) return { app: appToken, business: businessToken, directory: directoryToken }[tokenKind](value)
  if (tokenKind !== 'app') throw new Stop(USAGE, `Put the ${tokenKind} token into MARKETPLACE_TOKEN`)
  if (business === undefined)
    throw new Stop(USAGE, 'Give --business <uid>: the platform issues app tokens for a business')
  return marketplace.fetchAppToken(business)
}

async function register(
  marketplace: Marketplace,
  registration: { event: EventName; targetUrl: string; token: Token },
): Promise<Registered> {
  const { event } = registration
  try {
    // The call itself checks the kind of the token.
    const { status } = await marketplace.webhooks.register(registration as never)
    return { event, status, code: null, why: null }
  } catch (error) {
    if (!(error instanceof MarketplaceError)) throw error
    const { message, code, fix } = stopFor(error)
    return { event, status: 'failed', code, why: fix ? `${message}. ${fix}` : message }
  }
}

function exitCodeFor(results: readonly Registered[]): ExitCode {
  const failed = results.filter(({ status }) => status === 'failed')
  if (failed.length === 0) return DONE
  const isUsage = failed.every(({ code }) => code === 'token_kind_not_accepted')
  if (isUsage) return USAGE
  return failed.some(({ code }) => code === 'platform_refused') ? NO : UNAVAILABLE
}
