import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { examples, trimmed } from '../command-options.js'
import type { Act, Context } from '../context.js'
import { DONE, Stop, USAGE } from '../exit-codes.js'
import { plural } from '../layout.js'

export function addErase(program: Command, act: Act) {
  program
    .command('erase')
    .summary('delete all that is kept of a business')
    .description(
      'Delete all that is kept of a business. It asks for the uid once more. The journal keeps that it was erased, when ' +
        'and by whom. While the business has the app, its next event makes it known anew.',
    )
    .argument('<business>', 'the uid of the business', trimmed)
    .option('--yes <uid>', 'the uid once more, instead of typing it')
    .addHelpText('after', examples('erase business-1', 'erase business-1 --yes business-1 --actor ada'))
    .action(
      act(async (context, business: string, { yes }: { yes?: string }) => {
        const { out, actor } = context
        const marketplace = await context.open()
        const { subscriptions, journal } = await marketplace.exportData(business)
        const what = `${plural(subscriptions.length, 'subscription')} and ${plural(journal.length, 'entry', 'entries')} of the journal`
        const confirmed = yes ?? (await typedUid(context, `This deletes ${what} of ${business}, for good.`))
        if (confirmed.trim() !== business)
          throw new Stop(USAGE, 'The two uids are not the same: nothing was erased')
        const summary = await marketplace.erase(business, { actor })
        out.result(summary, () => `${business} is erased: ${what}.`)
        return DONE
      }),
    )
}

async function typedUid({ stdin, out }: Context, warning: string): Promise<string> {
  if (stdin.isTTY !== true)
    throw new Stop(USAGE, 'It is to be confirmed: nothing was erased', {
      mend: 'Give the uid once more: --yes <uid>',
    })
  out.note(warning)
  const lines = createInterface({ input: stdin, output: process.stderr })
  try {
    return await lines.question('Type the uid of the business to go on: ')
  } finally {
    lines.close()
  }
}
