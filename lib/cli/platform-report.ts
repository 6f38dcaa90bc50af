import type { Command } from 'commander'
import type { PlatformReport } from '../index.js'
import { examples } from './terminal/command-options.js'
import type { Act } from './terminal/context.js'
import { DONE } from './terminal/exit-codes.js'
import { plural, shortTime, table } from './terminal/layout.js'

type Stored = PlatformReport['stored']
type Field = Stored['records']['fields'][number]

const NEEDS_APP =
  'Headers, user agents, lifetimes of tokens and shapes of refusals are in the memory of the running app: call ' +
  'marketplace.platformReport() there.'

export function addPlatformReport(program: Command, act: Act) {
  program
    .command('platform-report')
    .summary('show what the platform really sends, without values')
    .description(
      'Show the fields, types and states that the platform really sends, repeated deliveries and the time until reads, ' +
        'from the newest 10,000 entries and subscriptions. No value is in it, but names of fields: look at them before you publish it.',
    )
    .addHelpText('after', examples('platform-report', 'platform-report --json'))
    .action(
      act(async (context) => {
        const { out } = context
        const marketplace = await context.open()
        const { madeAt, stored } = await marketplace.platformReport()
        // This process has received nothing, and called nothing.
        out.result({ madeAt, stored, process: null }, () => textOf(stored, out.width))
        out.note(NEEDS_APP)
        return DONE
      }),
    )
}

function textOf({ entries, since, events, records }: Stored, width: number): string {
  return [
    `The newest ${plural(entries, 'entry', 'entries')} of the journal${since ? `, since ${shortTime(since)}` : ''}`,
    ...events.flatMap(({ event, deliveries, repeats, untilRead, fields }) => [
      '',
      `${event}: ${plural(deliveries, 'entry', 'entries')}`,
      `again within a minute: ${repeats.sameIdentifiers} with the same identifiers, ${repeats.samePayload} with the same payload`,
      ...(untilRead
        ? [
            `until a read showed the change: median ${untilRead.medianMs} ms, longest ${untilRead.longestMs} ms, of ${untilRead.count}`,
          ]
        : []),
      tableOf(fields, width),
    ]),
    '',
    `Records as last read: ${records.count}`,
    ...(records.count > 0 ? [tableOf(records.fields, width)] : []),
  ].join('\n')
}

function tableOf(fields: readonly Field[], width: number): string {
  return table(
    [
      { title: 'FIELD', cell: ({ path }) => path || '(all)' },
      { title: 'TYPES', cell: typesOf },
      { title: '', cell: remarkOf },
    ],
    fields,
    width,
  )
}

function typesOf({ types }: Field): string {
  return Object.entries(types)
    .map(([type, count]) => `${type} ${count}`)
    .join(', ')
}

/** What the interface document does not have, and the names of events and states. */
function remarkOf({ documented, words }: Field): string {
  const shown = words.map(({ word, count, known }) => `${word} ${count}${known ? '' : ' (not documented)'}`)
  return [...(documented === false ? ['not documented'] : []), ...shown].join(', ')
}
