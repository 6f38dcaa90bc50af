import type { Command } from 'commander'
import { type Decision, type Marketplace, nextStepFor } from '../../index.js'
import { examples, trimmed, wholeNumber } from '../terminal/command-options.js'
import type { Act, Context } from '../terminal/context.js'
import { DONE, type ExitCode, Stop, UNAVAILABLE, USAGE } from '../terminal/exit-codes.js'
import { plural } from '../terminal/layout.js'
import { exitCodeOf, noteUnsearched, verdictText } from '../terminal/verdict.js'

const WAIT_S = 20
const WITHIN_MIN = 10
const MAX_WITHIN_MIN = 24 * 60

interface RefreshOptions {
  wait: number
  all?: true
  within: number
}

export function addRefresh(program: Command, act: Act) {
  program
    .command('refresh')
    .summary('request a read of a business, or of all, and wait for it')
    .description(
      'Request a read of every subscription of a business, wait for it, and print the answer. The worker of the running ' +
        'app reads; this program only requests it. The request remains even if no worker reads in time. With --all, make a ' +
        'read of every subscription due, about four a second and all within some minutes, and wait for none: for a database that was restored.',
    )
    .argument('[business]', 'the uid of the business', trimmed)
    .option('--all', 'all subscriptions, about four a second, within --within minutes')
    .option('--within <minutes>', 'the longest time for all reads', wholeNumber, WITHIN_MIN)
    .option('--wait <seconds>', 'how long to wait for the read', wholeNumber, WAIT_S)
    .addHelpText(
      'after',
      examples(
        'refresh business-1',
        'refresh business-1 --wait 60 --reason "ticket 812"',
        'refresh --all --within 30',
      ),
    )
    .action(
      act(async (context, business: string | undefined, { wait, all, within }: RefreshOptions) => {
        const { out } = context
        if ((business === undefined) === (all === undefined))
          throw new Stop(USAGE, 'Expected the uid of a business, or --all', {
            fix: 'See marketplace-webhooks refresh --help.',
          })
        if (within < 1 || within > MAX_WITHIN_MIN)
          throw new Stop(USAGE, `--within must be 1 to ${MAX_WITHIN_MIN} minutes`)
        if (business === undefined) return refreshAll(context, within)
        const marketplace = await context.open()
        await context.record(marketplace, { action: 'refresh', businessUid: business })
        const { decision, isRead } = await refreshWithin(marketplace, business, wait * 1_000)
        const step = await nextStepFor(decision, marketplace)
        out.result({ ...decision, isRead }, () => verdictText(decision, step, out))
        noteUnsearched(decision, context)
        if (isRead) return exitCodeOf(decision)
        out.note(
          `The read is requested, but no worker has finished it within ${wait} s. Check that the app runs with its worker ` +
            'on: it reads requested subscriptions first. `marketplace-webhooks doctor` finds other causes.',
        )
        return UNAVAILABLE
      }),
    )
}

async function refreshAll(context: Context, minutes: number): Promise<ExitCode> {
  const { out } = context
  const marketplace = await context.open()
  await context.record(marketplace, { action: 'refresh', about: `all within ${minutes} min` })
  const { subscriptions } = await marketplace.subscriptions.refreshAll({ withinMs: minutes * 60_000 })
  out.result(
    { subscriptions, withinMinutes: minutes },
    () =>
      `Reads of ${plural(subscriptions, 'subscription')} are requested. The running app does them within ${minutes} min; a stopped one, once it runs.`,
  )
  return DONE
}

/** Like `businesses.refresh`, with the waiting time of the person. */
async function refreshWithin(marketplace: Marketplace, business: string, ms: number) {
  const deadline = Date.now() + ms
  const stored = await marketplace.subscriptions.list({ businessUid: business, limit: MOST_AWAITED })
  const awaited = new Set(stored.map(({ subscription_uid }) => subscription_uid))
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>((resolve) => {
    // Node runs a timer beyond this limit at once, and `refresh` itself ends long before it.
    timer = setTimeout(() => resolve(undefined), Math.min(ms, 2 ** 31 - 1))
  })
  let decision = await Promise.race([marketplace.businesses.refresh(business), timeout])
  clearTimeout(timer)
  // `refresh` has its own waiting time, which may be shorter.
  while (decision !== undefined && isWaiting(decision, awaited) && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 250))
    decision = await marketplace.explain(business)
  }
  decision ??= await marketplace.explain(business)
  return { decision, isRead: !isWaiting(decision, awaited) }
}

const MOST_AWAITED = 1_000

/**
 * Whether a requested read was not tried yet, by the rule of `businesses.refresh`: of the subscriptions that were read
 * before, or if none was, of those in `awaited`, which were stored before the request, and of those that a search has found
 * since. And whether the search was not, if it is owed.
 */
function isWaiting({ subscriptions, search }: Decision, awaited: ReadonlySet<string>): boolean {
  if (search?.pending && search.failure === null) return true
  const read = subscriptions.filter(({ asOf }) => asOf !== null)
  const counted =
    read.length > 0
      ? read
      : subscriptions.filter(({ subscription_uid }) => search?.answered || awaited.has(subscription_uid))
  return counted.some(({ pending, failure }) => pending && failure === null)
}
