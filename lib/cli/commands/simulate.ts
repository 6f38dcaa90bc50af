import { Argument, type Command, InvalidArgumentError } from 'commander'
import { createMarketplace, EVENTS, type EventName, type MarketplaceOptions } from '../../index.js'
import { sampleDelivery } from '../../testing/index.js'
import { examples, trimmed, webAddress } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, NO, UNAVAILABLE } from '../terminal/exit-codes.js'
import { oneLine } from '../terminal/layout.js'
import { postDelivery } from '../terminal/post.js'

interface SimulateOptions {
  to: string
  business?: string
  subscription?: string
  item?: string
  set?: [string, unknown][]
}

export function addSimulate(program: Command, act: Act) {
  program
    .command('simulate')
    .summary('send one delivery to a receiver')
    .description(
      'Send one delivery, with every documented field, to a receiver. The first of DELIVERY_SECRETS is appended to the ' +
        'address. Without DELIVERY_SECRETS the address is used as it is.',
    )
    .addArgument(new Argument('<event>', 'the registration name of the event').choices(Object.keys(EVENTS)))
    .requiredOption('--to <url>', 'the mount address of the router', webAddress)
    .option('--business <uid>', 'the business it concerns', trimmed)
    .option('--subscription <uid>', 'the subscription it concerns', trimmed)
    .option('--item <uid>', 'the purchased item', trimmed)
    .option('--set <field=value>', 'any other field of data; the value is JSON or text', assignment)
    .addHelpText(
      'after',
      examples(
        'simulate application/installed \\\n      --to http://localhost:3000/hooks',
        'simulate purchasable_subscription/create \\\n      --business b1 --to http://localhost:3000/hooks',
      ),
    )
    .action(
      act(async ({ out, options }, event: EventName, given: SimulateOptions) => {
        const { deliverySecrets = [] } = await options()
        const secrets = [deliverySecrets].flat()
        const address = secrets.length > 0 ? await addressWith(deliverySecrets, given.to) : given.to
        const posted = await postDelivery(address, sampleDelivery(event, dataOf(event, given)))
        if (posted.kind === 'failed') {
          out.result({ event, error: posted.why, ms: posted.ms }, () => `${event}: ${posted.why}`)
          return UNAVAILABLE
        }
        const { status, ms, body } = posted
        const isAccepted = status >= 200 && status < 300
        const [id, code] = [textIn(body.id), textIn(body.code)]
        const issues = Array.isArray(body.issues) ? body.issues.map(textIn).filter(Boolean) : null
        out.result({ event, status, ms, id, code, issues }, () =>
          [
            `${event}: ${status} in ${ms} ms${id ? `, accepted as ${oneLine(String(id))}` : ''}${code ? `, ${oneLine(String(code))}` : ''}`,
            ...(Array.isArray(issues) ? issues.map((issue) => oneLine(String(issue))) : []),
          ].join('\n'),
        )
        if (status === 404) out.note('404 means: the mount address or the delivery secret is wrong.')
        return isAccepted ? DONE : NO
      }),
    )
}

/** Another program may answer at that address, with any value. */
function textIn(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** The mount address with the first delivery secret, as the app builds it. */
export async function addressWith(
  deliverySecrets: MarketplaceOptions['deliverySecrets'],
  mountUrl: string,
): Promise<string> {
  const unused = 'http://127.0.0.1:1'
  const marketplace = createMarketplace({
    app: { clientId: 'none', clientSecret: 'none', purchasableUid: 'none' },
    platform: { baseUrl: unused, authUrl: unused },
    deliverySecrets,
    store: 'sqlite::memory:',
    worker: false,
  })
  try {
    return marketplace.webhooks.targetUrl(mountUrl)
  } finally {
    await marketplace.close()
  }
}

/** The fields of `data` from the options, in the spelling of the event. */
function dataOf(event: EventName, given: SimulateOptions): Record<string, unknown> {
  const isRecord = event === 'purchasable_subscription/updated'
  const named = {
    [isRecord ? 'business_uid' : 'business_id']: given.business,
    [isRecord ? 'uid' : 'subscription_uid']: given.subscription,
    purchasable_uid: given.item,
  }
  const data = Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined))
  return { ...data, ...Object.fromEntries(given.set ?? []) }
}

function assignment(text: string, before: [string, unknown][] = []): [string, unknown][] {
  const [, field, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (field === undefined || value === undefined) throw new InvalidArgumentError('Expected field=value.')
  return [...before, [field, jsonOrText(value)]]
}

function jsonOrText(value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}
