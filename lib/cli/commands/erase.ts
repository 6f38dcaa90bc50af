import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act, Context } from '../terminal/context.js'
import { DONE, Stop, USAGE } from '../terminal/exit-codes.js'
import { plural } from '../terminal/layout.js'

export function addErase(program: Command, act: Act) {
  program
    .command('erase')
    .summary('delete the stored data of a business')
    .description(
      'Delete the stored data of a business. It asks for the uid again. The journal keeps the exports, replays and ' +
        'erasures that people did, with time, person and --reason, and a hash in place of the uid; `history` finds them ' +
        'by the uid. If the business still has the app, its next event stores new data.',
    )
    .argument('<business>', 'the uid of the business', trimmed)
    .option('--yes <uid>', 'the uid again, instead of typing it')
    .addHelpText(
      'after',
      examples(
        'erase business-1',
        'erase business-1 --yes business-1 --actor ada \\\n      --reason "request 12"',
      ),
    )
    .action(
      act(async (context, business: string, { yes }: { yes?: string }) => {
        const { out, actor, reason } = context
        const marketplace = await context.open()
        const { subscriptions, journal } = await marketplace.businesses.export(business)
        const entries = journal.filter(({ kind }) => kind !== 'action').length
        const what = `${plural(subscriptions.length, 'subscription')} and ${plural(entries, 'journal entry', 'journal entries')}`
        const warning = `This deletes ${what} of ${business}. It cannot be undone.`
        const confirmed = yes ?? (await typedUid(context, warning))
        if (confirmed.trim() !== business)
          throw new Stop(USAGE, 'Nothing was erased: the two uids are not the same')
        const summary = await marketplace.businesses.erase(business, { actor, ...(reason ? { reason } : {}) })
        out.result(
          summary,
          () => `Erased ${what} of ${business}. The journal has the erasure as ${summary.auditUid}.`,
        )
        return DONE
      }),
    )
}

async function typedUid({ stdin, out }: Context, warning: string): Promise<string> {
  if (stdin.isTTY !== true)
    throw new Stop(USAGE, 'Nothing was erased: the erasure was not confirmed', {
      fix: 'Give the uid again: --yes <uid>',
    })
  out.note(warning)
  const lines = createInterface({ input: stdin, output: process.stderr })
  try {
    return await lines.question('Type the uid of the business to continue: ')
  } finally {
    lines.close()
  }
}
