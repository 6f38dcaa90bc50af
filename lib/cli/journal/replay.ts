import type { Command } from 'commander'
import type { JournalEntry, Marketplace } from '../../index.js'
import { examples, trimmed, wholeNumber } from '../terminal/command-options.js'
import type { Act, Context } from '../terminal/context.js'
import { DONE, type ExitCode, NO, Stop, UNAVAILABLE, USAGE } from '../terminal/exit-codes.js'
import { plural, table } from '../terminal/layout.js'
import { addFilterOptions, type FilterOptions, filterFrom } from './filter.js'
import { sentenceOf, statusOf } from './list.js'
import { notFound } from './show.js'

type ReplayOptions = FilterOptions & { dryRun?: true; limit: number; wait?: number | true }

const WAIT_S = 60

export function addJournalReplay(journal: Command, act: Act) {
  addFilterOptions(journal.command('replay'))
    .summary('pass entries to the handlers again')
    .description(
      "Pass one entry, or all that match, to the app's handlers again, the oldest first. The worker of the app calls the " +
        'handlers; this program only requests it. With --wait it waits for the outcome. Exit code 1: one failed again.',
    )
    .argument('[id]', 'the id of one entry', trimmed)
    .option('--limit <count>', 'replay at most this many', wholeNumber, 100)
    .option('--dry-run', 'only show which entries match, with their errors')
    .option('--wait [seconds]', `wait for the outcome, at most ${WAIT_S} seconds or as many`, wholeNumber)
    .addHelpText(
      'after',
      examples(
        'journal replay --dead --dry-run',
        'journal replay --dead --name application/installed \\\n      --reason "fixed in 1.4" --wait',
        'journal replay 019a1b2c-3d4e-7f50-8123-456789abcdef',
      ),
    )
    .action(
      act(async (context, id: string | undefined, given: ReplayOptions) => {
        const filter = filterFrom(given)
        const isFiltered = Object.keys(filter).length > 0
        if (id !== undefined && isFiltered) throw new Stop(USAGE, 'Give either an id or a filter, not both')
        if (given.dryRun && given.wait) throw new Stop(USAGE, 'Give either --dry-run or --wait, not both')
        if (id !== undefined) return replayOne(context, id, given)
        const { status, kind, ...others } = filter
        if (status === undefined) throw new Stop(USAGE, 'Give an id, --dead, --retrying or --status')
        if (kind === 'action') throw new Stop(USAGE, 'Cannot replay actions: no handler gets them')
        return replayMany(context, { status, ...(kind ? { kind } : {}), ...others }, given)
      }),
    )
}

async function replayOne(context: Context, id: string, given: ReplayOptions): Promise<ExitCode> {
  const marketplace = await context.open()
  const entry = await marketplace.journal.get(id)
  if (!entry) throw notFound(id)
  if (entry.kind === 'action')
    throw new Stop(USAGE, 'Cannot replay the entry: it is an action of a person, and no handler gets actions')
  if (given.dryRun) return preview(context, marketplace, { matched: 1, ids: [id] })
  await context.record(marketplace, { action: 'replay', entryId: id })
  if (!(await marketplace.journal.replay(id))) throw notFound(id)
  return replayed(context, marketplace, { matched: 1, replayed: 1, ids: [id] }, given)
}

async function replayMany(
  context: Context,
  filter: Parameters<Marketplace['journal']['replayAll']>[0],
  given: ReplayOptions,
): Promise<ExitCode> {
  const { out } = context
  const { limit, dryRun = false } = given
  const marketplace = await context.open()
  const found = await marketplace.journal.replayAll(filter, { limit, dryRun: true })
  if (found.matched === 0) {
    out.result({ matched: 0, replayed: 0, ids: [], dryRun }, () => 'No entry matches.')
    return NO
  }
  if (dryRun) return preview(context, marketplace, found)
  const { businessUid, subscriptionUid, ...others } = filter
  const about = `${plural(found.ids.length, 'entry', 'entries')}: ${JSON.stringify(others)}`
  await context.record(marketplace, {
    action: 'replay',
    ...(businessUid === undefined ? {} : { businessUid }),
    ...(subscriptionUid === undefined ? {} : { subscriptionUid }),
    about,
  })
  // The timeline of each business has the action too, as after a replay in the console.
  const named = new Set<string | null>([null, businessUid === undefined ? null : String(businessUid)])
  const ids: string[] = []
  for (const id of found.ids) {
    const business_uid = (await marketplace.journal.get(id))?.business_uid ?? null
    if (!named.has(business_uid)) {
      named.add(business_uid)
      await context.record(marketplace, { action: 'replay', entryId: id, about: `one of ${about}` })
    }
    if (await marketplace.journal.replay(id, { status: filter.status })) ids.push(id)
  }
  return replayed(context, marketplace, { matched: found.matched, replayed: ids.length, ids }, given)
}

interface Found {
  matched: number
  ids: string[]
}

/**
 * Shows what would be replayed: each entry with its event, business and error, and what a handler of a change or an
 * entitlement would get now.
 */
async function preview(context: Context, marketplace: Marketplace, found: Found): Promise<ExitCode> {
  const { out } = context
  const entries: JournalEntry[] = []
  for (const id of found.ids) {
    const entry = await marketplace.journal.get(id)
    if (entry) entries.push(entry)
  }
  const answers = await answersFor(context, marketplace, entries)
  const { entitled = {} } = answers
  const shown = entries.map(
    ({ id, kind, name, business_uid, subscription_uid, status, attempts, error }) => ({
      ...{ id, kind, name, business_uid, subscription_uid, status, attempts, error },
    }),
  )
  const result = {
    matched: found.matched,
    replayed: 0,
    ids: found.ids,
    dryRun: true,
    entries: shown,
    ...answers,
  }
  out.result(result, () =>
    [
      table(
        [
          { title: 'STATUS', cell: statusOf },
          { title: 'ID', cell: ({ id }) => id },
          {
            title: '',
            cell: (entry) =>
              `${sentenceOf(entry)}${entry.id in entitled ? `; entitled now: ${entitled[entry.id] ?? 'not known'}` : ''}`,
          },
        ],
        entries,
        out.width,
      ),
      `${countOf(found)} would be replayed.`,
    ].join('\n'),
  )
  noteRest(context, found)
  return DONE
}

/** By id of a change or an entitlement: the `entitled` that a handler would get now; null while the answer is not known. */
interface Answers {
  entitled?: Record<string, boolean | null>
}

async function answersFor(
  { out, hasConfig }: Context,
  marketplace: Marketplace,
  entries: readonly JournalEntry[],
): Promise<Answers> {
  const entitled: Record<string, boolean | null> = {}
  for (const { id, kind, business_uid } of entries) {
    if ((kind !== 'change' && kind !== 'entitlement') || business_uid === null) continue
    const decision = await marketplace.explain(business_uid, { search: false })
    entitled[id] = decision.known ? decision.entitled : null
  }
  if (Object.keys(entitled).length === 0) return {}
  if (!hasConfig)
    out.note(
      '`entitled` is by the default rule. If the app has an entitledWhen, add --config options.js, the file with its options.',
    )
  return { entitled }
}

/** Shows what is replayed, and with --wait what became of it. */
async function replayed(
  context: Context,
  marketplace: Marketplace,
  summary: Found & { replayed: number },
  { wait }: ReplayOptions,
): Promise<ExitCode> {
  const { out } = context
  const { ids } = summary
  const sentence = `${countOf(summary)} replayed.`
  if (wait === undefined) {
    out.result({ ...summary, dryRun: false }, () => [...ids.map((id) => `  ${id}`), sentence].join('\n'))
    noteRest(context, summary)
    return DONE
  }
  const seconds = wait === true ? WAIT_S : wait
  const outcomes = await outcomesOf(marketplace, ids, seconds * 1_000)
  out.result({ ...summary, dryRun: false, outcomes }, () =>
    [
      table(
        [
          {
            title: 'OUTCOME',
            cell: ({ outcome }) => outcome,
            paint: (text, { outcome }) => out.paint[outcome === 'handled' ? 'good' : 'bad'](text),
          },
          { title: 'ID', cell: ({ id }) => id },
          { title: '', cell: ({ error }) => error ?? '' },
        ],
        outcomes,
        out.width,
      ),
      sentence,
    ].join('\n'),
  )
  noteRest(context, summary)
  const isWaiting = outcomes.some(({ outcome }) => outcome === 'waiting')
  if (isWaiting)
    out.note(
      `Some were not handled within ${seconds} s: they remain requested. Check that the app runs with its worker on, and has the handlers.`,
    )
  if (outcomes.some(({ outcome }) => outcome === 'failed' || outcome === 'unhandled')) return NO
  return isWaiting ? UNAVAILABLE : DONE
}

/** What became of a replayed entry. `unhandled`: the app has no handler for it. */
interface Outcome {
  id: string
  outcome: 'handled' | 'failed' | 'unhandled' | 'waiting'
  /** Of one that failed. */
  error: string | null
}

/** Looks until each entry was tried once, or the time is over. */
async function outcomesOf(
  marketplace: Marketplace,
  ids: readonly string[],
  waitMs: number,
): Promise<Outcome[]> {
  const until = Date.now() + waitMs
  const outcomes = new Map<string, Outcome>()
  for (;;) {
    for (const id of ids) {
      const known = outcomes.get(id)
      if (known === undefined || known.outcome === 'waiting')
        outcomes.set(id, outcomeOf(id, await marketplace.journal.get(id)))
    }
    const isOver = [...outcomes.values()].every(({ outcome }) => outcome !== 'waiting')
    if (isOver || Date.now() >= until) return [...outcomes.values()]
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

const LOOK_EVERY_MS = 250

/** A replay begins with no attempts. An entry that is gone was handled, and its retention has ended, or it was erased. */
function outcomeOf(id: string, entry: JournalEntry | undefined): Outcome {
  const { status = 'done', attempts = 0, error = null } = entry ?? {}
  if (status === 'done') return { id, outcome: 'handled', error: null }
  if (status === 'unhandled') return { id, outcome: 'unhandled', error: null }
  return status === 'dead' || attempts > 0
    ? { id, outcome: 'failed', error }
    : { id, outcome: 'waiting', error: null }
}

function countOf({ matched, ids }: Found): string {
  return `${plural(matched, 'entry matches', 'entries match')}, ${ids.length}`
}

function noteRest({ out }: Context, { matched, ids }: Found) {
  if (matched > ids.length) out.note(`For the other ${matched - ids.length} run it again, or raise --limit.`)
}
