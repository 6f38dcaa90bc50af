import type { Command } from 'commander'
import { fixtureOf } from '../../testing/index.js'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, Stop, USAGE } from '../terminal/exit-codes.js'
import { jsonText } from '../terminal/output.js'
import { notFound } from './show.js'

export function addJournalExport(journal: Command, act: Act) {
  journal
    .command('export')
    .summary('print a delivery as a test fixture')
    .description(
      'Print the body of a delivery as JSON for a test, with all identifiers, texts, numbers and times replaced. Posted to ' +
        'a receiver, it is recognised as the delivery was. Names of fields stay: look at them before you publish it. ' +
        'Exit code 1: no entry has this id.',
    )
    .argument('<id>', 'the id of the entry', trimmed)
    .requiredOption('--fixture', 'replace the values; there is no other export of an entry')
    .addHelpText('after', examples('journal export --fixture \\\n      019a1b2c-3d4e-7f50-8123-456789abcdef'))
    .action(
      act(async (context, id: string) => {
        const { out } = context
        const marketplace = await context.open()
        const entry = await marketplace.journal.get(id)
        if (!entry) throw notFound(id)
        const { kind, payload } = entry
        if (kind !== 'event' && kind !== 'unrecognised')
          throw new Stop(USAGE, `Cannot export the entry: it is no delivery, but of the kind ${kind}`, {
            fix: 'List the deliveries with `journal list --kind event`, or with `--kind unrecognised`.',
          })
        if (typeof payload === 'string')
          throw new Stop(
            USAGE,
            'Cannot export the entry: its payload is a text, or was nested too deeply to be stored',
          )
        const fixture = fixtureOf(payload)
        out.result(fixture, () => jsonText(fixture, { indent: 2 }))
        return DONE
      }),
    )
}
