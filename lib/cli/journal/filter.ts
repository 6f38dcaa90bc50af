import { type Command, Option } from 'commander'
import type { JournalFilter } from '../../index.js'
import { trimmed } from '../terminal/command-options.js'
import { Stop, USAGE } from '../terminal/exit-codes.js'

/** The options that select entries. */
export interface FilterOptions {
  dead?: true
  retrying?: true
  status?: NonNullable<JournalFilter['status']>
  kind?: NonNullable<JournalFilter['kind']>
  name?: string
  business?: string
  subscription?: string
  since?: string
  until?: string
}

export function addFilterOptions(command: Command): Command {
  return command
    .option('--dead', 'entries whose tries are used up')
    .option('--retrying', 'entries that failed and will be tried again')
    .addOption(
      new Option('--status <status>', 'entries of this status').choices([
        ...['pending', 'retrying', 'unhandled', 'done', 'dead'],
      ]),
    )
    .addOption(
      new Option('--kind <kind>', 'entries of this kind').choices([
        'event',
        'change',
        'entitlement',
        'unrecognised',
        'action',
      ]),
    )
    .option('--name <event>', 'events of this registration name', trimmed)
    .option('--business <uid>', 'entries of this business', trimmed)
    .option('--subscription <uid>', 'entries of this subscription', trimmed)
    .option(
      '--since <time>',
      'received at this time or later: ISO 8601 with Z or an offset, or a day',
      trimmed,
    )
    .option('--until <time>', 'received before this time', trimmed)
}

export function filterFrom(given: FilterOptions): JournalFilter {
  const named = [given.dead && 'dead', given.retrying && 'retrying', given.status].filter(Boolean)
  if (named.length > 1) throw new Stop(USAGE, 'Give only one of --dead, --retrying and --status')
  const filter = {
    status: named[0],
    kind: given.kind,
    name: given.name,
    businessUid: given.business,
    subscriptionUid: given.subscription,
    since: given.since,
    until: given.until,
  }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
}
