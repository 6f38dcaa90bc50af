import type { Command } from 'commander'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE } from '../terminal/exit-codes.js'

export function addTrack(program: Command, act: Act) {
  program
    .command('track')
    .summary('add a subscription without an event')
    .description(
      "Add a subscription whose event was lost or never sent. The app's worker reads it; `explain` shows the outcome.",
    )
    .argument('<subscription>', 'the uid of the subscription', trimmed)
    .requiredOption('--business <uid>', 'the uid of its business', trimmed)
    .option('--quiet', 'do not call handlers for the change that the first read finds')
    .addHelpText('after', examples('track subscription-1 --business business-1'))
    .action(
      act(async (context, subscriptionUid: string, given: { business: string; quiet?: true }) => {
        const { out } = context
        const { business: businessUid, quiet = false } = given
        const marketplace = await context.open()
        await context.record(marketplace, { action: 'track', businessUid, subscriptionUid })
        await marketplace.subscriptions.track({ subscriptionUid, businessUid }, { announce: !quiet })
        out.result(
          { tracked: true, subscription_uid: subscriptionUid, business_uid: businessUid, announce: !quiet },
          () => `${subscriptionUid} of ${businessUid} is added, and its read is requested.`,
        )
        out.note(`When the app runs, see the outcome with: marketplace-webhooks explain ${businessUid}`)
        return DONE
      }),
    )
}
