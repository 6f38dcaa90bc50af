import type { Command } from 'commander'
import type { PlatformReport } from '../index.js'
import { examples } from './terminal/command-options.js'
import type { Act } from './terminal/context.js'
import { DONE } from './terminal/exit-codes.js'
import { plural, shortTime, table } from './terminal/layout.js'

type Stored = PlatformReport['stored']
type Seen = PlatformReport['seen']
type Field = Stored['records']['fields'][number]

const IN_MEMORY =
  'A running app stores the headers, tokens and refusals that it has seen every ten minutes, and when it closes.'

export function addPlatformReport(program: Command, act: Act) {
  program
    .command('platform-report')
    .summary('show what the platform really sends, without values')
    .description(
      'Show the fields, types and states that the platform really sends, repeated deliveries and the time until reads, ' +
        'from the newest 10,000 entries and subscriptions; the headers and user agents of deliveries, the lifetimes of tokens ' +
        'and the shapes of refusals. No value is in it, but names of fields and headers: look at them before you publish it.',
    )
    .addHelpText('after', examples('platform-report', 'platform-report --json'))
    .action(
      act(async (context) => {
        const { out } = context
        const marketplace = await context.open()
        const report = await marketplace.platformReport()
        out.result(report, () =>
          [textOf(report.stored, out.width), ...linesOf(report.seen, out.width)].join('\n'),
        )
        out.note(IN_MEMORY)
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

function linesOf({ since, events, tokens, refusals }: Seen, width: number): string[] {
  if (since === null) return ['', 'No app on this database has seen anything yet.']
  return [
    '',
    `Seen since ${shortTime(since)}`,
    ...events.flatMap(({ event, deliveries, examined, headers, userAgents }) => [
      '',
      `${event}: ${plural(deliveries, 'delivery', 'deliveries')}, ${examined} examined`,
      `headers: ${namesOf(headers)}`,
      `user agents: ${namesOf(userAgents)}`,
    ]),
    '',
    `Tokens: ${tokens.count}${lifetimesOf(tokens)}`,
    '',
    `Replies without the record or the token that was asked for: ${plural(refusals.length, 'shape')}`,
    ...(refusals.length > 0
      ? [
          table(
            [
              { title: 'CALL', cell: ({ call }) => call },
              { title: 'STATUS', cell: ({ status }) => String(status) },
              { title: 'COUNT', cell: ({ count }) => String(count) },
              { title: 'TYPE', cell: ({ contentType }) => contentType ?? '' },
              { title: 'FIELDS', cell: ({ fields }) => fields.join(', ') },
            ],
            refusals,
            width,
          ),
        ]
      : []),
  ]
}

function namesOf(names: Seen['events'][number]['headers']): string {
  return names.map(({ name, count }) => `${name} ${count}`).join(', ') || 'none'
}

function lifetimesOf({ expiresIn, shortestSeconds, longestSeconds }: Seen['tokens']): string {
  const types = Object.entries(expiresIn).flatMap(([type, count]) => (count > 0 ? [`${type} ${count}`] : []))
  const range = shortestSeconds === null ? [] : [`${shortestSeconds} to ${longestSeconds} s`]
  const lifetimes = [...range, ...types]
  return lifetimes.length > 0 ? `, lifetimes: ${lifetimes.join(', ')}` : ''
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
