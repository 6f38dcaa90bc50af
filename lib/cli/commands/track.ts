import type { Command } from 'commander'
import { type ErrorCode, failureInWords } from '../../index.js'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, type ExitCode, FIXES, NO, Stop, UNAVAILABLE } from '../terminal/exit-codes.js'
import { shellArgument } from '../terminal/layout.js'

export function addTrack(program: Command, act: Act) {
  program
    .command('track')
    .summary('add a subscription without an event')
    .description(
      'Add a subscription whose event was lost or never sent. The command first asks the platform, so that a mistyped uid ' +
        "is not added. The app's worker reads it; `explain` shows the outcome. Exit code 1: the platform does not show it.",
    )
    .argument('<subscription>', 'the uid of the subscription', trimmed)
    .requiredOption('--business <uid>', 'the uid of its business', trimmed)
    .option('--quiet', 'do not call handlers for the change that the first read finds')
    .option('--force', 'do not ask the platform first')
    .addHelpText('after', examples('track subscription-1 --business business-1'))
    .action(
      act(
        async (context, subscriptionUid: string, given: { business: string; quiet?: true; force?: true }) => {
          const { out } = context
          const { business: businessUid, quiet = false, force = false } = given
          const marketplace = await context.open({ asksPlatform: !force })
          if (!force) {
            // A typo that is stored would make of "has not bought" a "not known yet", which nobody can take back.
            const { failure } = await marketplace.subscriptions.look({ subscriptionUid, businessUid })
            if (failure !== null) throw notShown(failure)
          }
          await context.record(marketplace, { action: 'track', businessUid, subscriptionUid })
          await marketplace.subscriptions.track({ subscriptionUid, businessUid }, { announce: !quiet })
          out.result(
            { tracked: true, subscription_uid: subscriptionUid, business_uid: businessUid, announce: !quiet },
            () => `${subscriptionUid} of ${businessUid} is added, and its read is requested.`,
          )
          out.note(
            `When the app runs, see the outcome with: marketplace-webhooks explain ${shellArgument(businessUid)}`,
          )
          return DONE
        },
      ),
    )
}

/** Why a subscription is not added. */
function notShown(failure: string): Stop {
  const known = FIXES[failure as ErrorCode] ?? ''
  const [exitCode, fix]: [ExitCode, string] =
    failure === 'platform_record_mismatch'
      ? [NO, known]
      : failure === 'platform_record_missing'
        ? [NO, `${known} If the platform shows purchases late, wait, or add it with --force.`]
        : [UNAVAILABLE, `${known} Or add it with --force: the app reads it later.`]
  return new Stop(exitCode, `Nothing was added: ${failureInWords(failure)}`, {
    code: failure,
    fix: fix.trim(),
  })
}
