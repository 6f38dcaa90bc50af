import type { Command } from 'commander'
import { nextStepFor } from '../../index.js'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { exitCodeOf, noteUnsearched, verdictText } from '../terminal/verdict.js'

export function addExplain(program: Command, act: Act) {
  program
    .command('explain')
    .summary('show whether a business may use the app, and why')
    .description(
      'Show whether a business may use the app, and why. Exit code 0: yes; 1: no; 3: not known yet, or the lookup failed.',
    )
    .argument('<business>', 'the uid of the business', trimmed)
    .option('--item <uid>', 'for one of several items of the app', trimmed)
    .addHelpText(
      'after',
      examples('explain business-1', 'explain business-1 --item plan-pro', 'explain b1 --json'),
    )
    .action(
      act(async (context, business: string, { item }: { item?: string }) => {
        const { out } = context
        const marketplace = await context.open()
        const decision = await marketplace.explain(business, {
          ...(item === undefined ? {} : { purchasableUid: item }),
        })
        const step = await nextStepFor(decision, marketplace)
        out.result(decision, () => verdictText(decision, step, out))
        noteUnsearched(decision, context)
        return exitCodeOf(decision)
      }),
    )
}
