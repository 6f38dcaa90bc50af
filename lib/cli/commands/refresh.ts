import type { Command } from 'commander'
import type { Decision, Marketplace } from '../../index.js'
import { examples, trimmed, wholeNumber } from '../command-options.js'
import type { Act } from '../context.js'
import { UNAVAILABLE } from '../exit-codes.js'
import { exitCodeOf, verdictText } from '../verdict.js'

const WAIT_S = 20

export function addRefresh(program: Command, act: Act) {
  program
    .command('refresh')
    .summary('have a business read again, and wait for it')
    .description(
      'Ask for a read of everything known of a business, wait for it, and print the answer. The worker of the running ' +
        'app reads; this program only asks. The read is asked for and kept, also when nobody does it in time.',
    )
    .argument('<business>', 'the uid of the business', trimmed)
    .option('--wait <seconds>', 'how long to wait for the read', wholeNumber, WAIT_S)
    .addHelpText(
      'after',
      examples('refresh business-1', 'refresh business-1 --wait 60 --reason "ticket 812"'),
    )
    .action(
      act(async (context, business: string, { wait }: { wait: number }) => {
        const { out } = context
        const marketplace = await context.open()
        await context.record(marketplace, { action: 'refresh', business_uid: business })
        const decision = await refreshWithin(marketplace, business, wait * 1_000)
        const isRead = !isOwed(decision)
        out.result({ ...decision, isRead }, () => verdictText(decision, out))
        if (isRead) return exitCodeOf(decision)
        out.note(
          `The read is asked for and kept, and nobody has done it within ${wait} s. Is the app running, with its worker ` +
            'on? Start it: it reads first what was asked for. `marketplace-webhooks doctor` finds other causes.',
        )
        return UNAVAILABLE
      }),
    )
}

/** As `marketplace.refresh`, for as long as the person wants to wait. */
async function refreshWithin(marketplace: Marketplace, business: string, ms: number): Promise<Decision> {
  const deadline = Date.now() + ms
  let timer: NodeJS.Timeout | undefined
  const isOver = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms)
  })
  let decision = await Promise.race([marketplace.refresh(business), isOver])
  clearTimeout(timer)
  // It waits for a time of its own, which may be shorter.
  while (decision !== undefined && isOwed(decision) && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 250))
    decision = await marketplace.explain(business)
  }
  return decision ?? marketplace.explain(business)
}

/** A read was asked for, and nobody has tried it. */
function isOwed({ subscriptions }: Decision): boolean {
  return subscriptions.some(({ pending, failure }) => pending && failure === null)
}
