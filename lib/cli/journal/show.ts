import type { Command } from 'commander'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, NO, Stop } from '../terminal/exit-codes.js'
import { fields, oneLine, shortTime } from '../terminal/layout.js'
import { jsonText } from '../terminal/output.js'
import { statusOf } from './list.js'

export function addJournalShow(journal: Command, act: Act) {
  journal
    .command('show')
    .summary('show one entry with its payload')
    .description(
      'Show one entry with its payload, and the stack of the error of its handler. Exit code 1: no entry has this id.',
    )
    .argument('<id>', 'the id of the entry', trimmed)
    .addHelpText('after', examples('journal show 019a1b2c-3d4e-7f50-8123-456789abcdef'))
    .action(
      act(async (context, id: string) => {
        const { out } = context
        const marketplace = await context.open()
        const entry = await marketplace.journal.get(id)
        if (!entry) throw notFound(id)
        out.result(entry, () =>
          [
            fields(
              {
                id: entry.id,
                kind: entry.kind,
                name: entry.name,
                status: statusOf(entry),
                received: shortTime(entry.receivedAt),
                business: entry.business_uid,
                subscription: entry.subscription_uid,
                cause: entry.cause,
                tries: String(entry.attempts),
                'next try': entry.dueAt && shortTime(entry.dueAt),
                error: entry.error,
                issues: entry.issues?.join('; '),
              },
              out.width,
            ),
            '',
            ...(entry.stack === null ? [] : [...entry.stack.split('\n').map(asFrame), '']),
            jsonText(entry.payload, { indent: 2 }),
          ].join('\n'),
        )
        return DONE
      }),
    )
}

/** A line of a stack. The frames are indented. */
function asFrame(line: string): string {
  return line.startsWith(' ') ? `    ${oneLine(line)}` : oneLine(line)
}

export function notFound(id: string): Stop {
  return new Stop(NO, `No entry has the id ${oneLine(id)}`, {
    code: 'not_found',
    fix: 'List the entries with `journal list`. The retention of this one may have ended.',
  })
}
