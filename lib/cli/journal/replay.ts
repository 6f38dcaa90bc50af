import type { Command } from 'commander'
import type { Marketplace } from '../../index.js'
import { examples, trimmed, wholeNumber } from '../terminal/command-options.js'
import type { Act, Context } from '../terminal/context.js'
import { DONE, type ExitCode, NO, Stop, USAGE } from '../terminal/exit-codes.js'
import { plural } from '../terminal/layout.js'
import { addFilterOptions, type FilterOptions, filterFrom } from './filter.js'
import { notFound } from './show.js'

type ReplayOptions = FilterOptions & { dryRun?: true; limit: number }

export function addJournalReplay(journal: Command, act: Act) {
  addFilterOptions(journal.command('replay'))
    .summary('pass entries to the handlers again')
    .description(
      "Pass one entry, or all that match, to the app's handlers again, the oldest first. The worker of the app calls the " +
        'handlers; this program only requests it.',
    )
    .argument('[id]', 'the id of one entry', trimmed)
    .option('--limit <count>', 'replay at most this many', wholeNumber, 100)
    .option('--dry-run', 'only show which entries match')
    .addHelpText(
      'after',
      examples(
        'journal replay --dead --dry-run',
        'journal replay --dead --name application/installed \\\n      --reason "fixed in 1.4"',
        'journal replay 019a1b2c-3d4e-7f50-8123-456789abcdef',
      ),
    )
    .action(
      act(async (context, id: string | undefined, given: ReplayOptions) => {
        const filter = filterFrom(given)
        const isFiltered = Object.keys(filter).length > 0
        if (id !== undefined && isFiltered) throw new Stop(USAGE, 'Give either an id or a filter, not both')
        if (id !== undefined) return replayOne(context, id, given)
        const { status, kind, ...others } = filter
        if (status === undefined) throw new Stop(USAGE, 'Give an id, --dead, --retrying or --status')
        if (kind === 'action') throw new Stop(USAGE, 'Cannot replay actions: no handler gets them')
        return replayMany(context, { status, ...(kind ? { kind } : {}), ...others }, given)
      }),
    )
}

async function replayOne(context: Context, id: string, { dryRun }: ReplayOptions): Promise<ExitCode> {
  const { out } = context
  const marketplace = await context.open()
  const entry = await marketplace.journal.get(id)
  if (!entry) throw notFound(id)
  if (entry.kind === 'action')
    throw new Stop(USAGE, 'Cannot replay the entry: it is an action of a person, and no handler gets actions')
  if (!dryRun) {
    await context.record(marketplace, { action: 'replay', entryId: id })
    if (!(await marketplace.journal.replay(id))) throw notFound(id)
  }
  const preview = dryRun ? await answersFor(context, marketplace, [id]) : {}
  out.result({ matched: 1, replayed: dryRun ? 0 : 1, ids: [id], dryRun: dryRun ?? false, ...preview }, () =>
    dryRun ? `${id} (${entry.status}) would be replayed${wordsFor(preview, id)}.` : `${id} is replayed.`,
  )
  return DONE
}

/** By id of a change or an entitlement: the `entitled` that a handler would get now; null while the answer is not known. */
interface Answers {
  entitled?: Record<string, boolean | null>
}

async function answersFor(
  { out, hasConfig }: Context,
  marketplace: Marketplace,
  ids: readonly string[],
): Promise<Answers> {
  const entitled: Record<string, boolean | null> = {}
  for (const id of ids) {
    const entry = await marketplace.journal.get(id)
    if (entry === undefined || entry.business_uid === null) continue
    if (entry.kind !== 'change' && entry.kind !== 'entitlement') continue
    const decision = await marketplace.explain(entry.business_uid)
    entitled[id] = decision.known ? decision.entitled : null
  }
  if (Object.keys(entitled).length === 0) return {}
  if (!hasConfig)
    out.note(
      '`entitled` is by the default rule. If the app has an entitledWhen, add --config options.js, the file with its options.',
    )
  return { entitled }
}

function wordsFor({ entitled = {} }: Answers, id: string): string {
  return id in entitled ? `, entitled now: ${entitled[id] ?? 'not known'}` : ''
}

async function replayMany(
  context: Context,
  filter: Parameters<Marketplace['journal']['replayAll']>[0],
  { dryRun = false, limit }: { dryRun?: boolean; limit: number },
): Promise<ExitCode> {
  const { out } = context
  const marketplace = await context.open()
  const preview = await marketplace.journal.replayAll(filter, { limit, dryRun: true })
  if (preview.matched === 0) {
    out.result({ matched: 0, replayed: 0, ids: [], dryRun }, () => 'No entry matches.')
    return NO
  }
  if (!dryRun) {
    const { businessUid, subscriptionUid, ...others } = filter
    await context.record(marketplace, {
      action: 'replay',
      ...(businessUid === undefined ? {} : { businessUid }),
      ...(subscriptionUid === undefined ? {} : { subscriptionUid }),
      about: `${plural(preview.ids.length, 'entry', 'entries')}: ${JSON.stringify(others)}`,
    })
  }
  const summary = dryRun ? preview : await marketplace.journal.replayAll(filter, { limit })
  const { matched, ids } = summary
  const answers = dryRun ? await answersFor(context, marketplace, ids) : {}
  out.result({ ...summary, replayed: dryRun ? 0 : summary.replayed, dryRun, ...answers }, () =>
    [
      ...ids.map((id) => `  ${id}${wordsFor(answers, id)}`),
      `${plural(matched, 'entry matches', 'entries match')}, ${ids.length} ${dryRun ? 'would be' : 'are'} replayed.`,
    ].join('\n'),
  )
  if (matched > ids.length) out.note(`For the other ${matched - ids.length} run it again, or raise --limit.`)
  return DONE
}
