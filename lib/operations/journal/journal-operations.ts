import { z } from 'zod'
import type { Clock } from '../../base/clock.js'
import { MarketplaceError } from '../../base/errors.js'
import { newId } from '../../base/ids.js'
import { identifier, storable } from '../../base/record.js'
import type { EntryKind, NewAction, Store } from '../../store/port/store.js'
import { checked, checkedFilter, type JournalFilter, limit, status } from './entry-filter.js'
import { entryPages } from './pages.js'
import { type JournalEntry, publicEntry } from './public-entry.js'

/** Which entries to replay: as for `journal.list`, with a status. Actions have no handlers. */
export interface ReplayFilter extends Omit<JournalFilter, 'limit' | 'before' | 'status' | 'kind'> {
  /** The status of the entries. It is required, so that nobody replays all by mistake. */
  status: NonNullable<JournalFilter['status']>
  /** The kind of the entries. */
  kind?: Exclude<EntryKind, 'action'>
}

/** The result of `journal.replayAll`. */
export interface ReplaySummary {
  /** Number of entries that match the filter, counted up to 10,000. */
  matched: number
  /** How many of the oldest, at most `limit`, still had the status and are replayed. 0 with `dryRun`. */
  replayed: number
  /** The ids of the replayed entries, oldest first; with `dryRun`, of the entries that would be replayed. */
  ids: string[]
}

/** An action of a person, for the journal. */
export interface Action {
  /** The person. */
  actor: string
  /** The name of the action, such as `replay` or `refresh`. `erase` is reserved for erasures. */
  action: string
  /** The business that the action concerns. */
  businessUid?: string | number
  /** The subscription that the action concerns. */
  subscriptionUid?: string | number
  /** The entry the action concerns. Without `businessUid`, the action belongs to the business of this entry. */
  entryId?: string
  /** Why the person did it, such as the number of a ticket. 1 to 500 characters. */
  reason?: string
}

const MAX_MATCHED = 10_000
const PAGE = 250

const text = z.string().min(1).max(500).transform(storable)
const ACTION = z.strictObject({
  actor: text,
  action: text,
  businessUid: identifier.optional(),
  subscriptionUid: identifier.optional(),
  entryId: text.optional(),
  reason: text.optional(),
})
const REPLAY_ONE = z.strictObject({ status: status.optional() })
const REPLAY = z.strictObject({ limit: limit.optional(), dryRun: z.boolean().optional() })

/** The journal for people: lists and replays entries, and records the actions of people. */
export function createJournalOperations(options: {
  store: Pick<Store, 'listEntries' | 'getEntry' | 'replayEntry' | 'recordAction'>
  clock: Clock
  onAction(action: NewAction): void
}) {
  const { store, clock, onAction } = options

  return {
    async list(filter: JournalFilter = {}): Promise<JournalEntry[]> {
      const entries = await store.listEntries(checkedFilter(filter))
      return entries.map(publicEntry)
    },

    async get(id: string): Promise<JournalEntry | undefined> {
      const entry = await store.getEntry(requireId(id))
      return entry && publicEntry(entry)
    },

    async replay(id: string, given: Pick<JournalFilter, 'status'> = {}): Promise<boolean> {
      return store.replayEntry(requireId(id), checked(REPLAY_ONE, given, 'replay').status)
    },

    async replayAll(
      filter: ReplayFilter,
      given: { limit?: number; dryRun?: boolean } = {},
    ): Promise<ReplaySummary> {
      const { limit: most = 100, dryRun = false } = checked(REPLAY, given, 'replay')
      const { limit: listed, before, ...which } = checkedFilter(filter)
      const isRefused = which.status === undefined || which.kind === 'action'
      if (isRefused || listed !== undefined || before !== undefined)
        throw new MarketplaceError(
          'argument_invalid',
          'Cannot replay: the filter must have a status, no limit, no before, and not the kind action',
        )
      const matched: string[] = []
      for await (const page of entryPages(store, which, PAGE)) {
        matched.push(...page.filter(({ kind }) => kind !== 'action').map(({ id }) => id))
        if (matched.length >= MAX_MATCHED) break
      }
      // The oldest first, so that the entries of one lane keep their order.
      const ids = matched.slice(-most).reverse()
      const replayed: string[] = []
      for (const id of dryRun ? [] : ids) if (await store.replayEntry(id, which.status)) replayed.push(id)
      return { matched: matched.length, replayed: replayed.length, ids: dryRun ? ids : replayed }
    },

    async recordAction(given: Action): Promise<{ id: string }> {
      const { actor, action, businessUid, subscriptionUid, entryId, reason } = checked(
        ACTION,
        given,
        'record the action',
      )
      if (action === 'erase')
        throw new MarketplaceError(
          'argument_invalid',
          'Cannot record the action: the name erase is reserved for businesses.erase()',
        )
      const entry = entryId === undefined ? undefined : await store.getEntry(entryId)
      const recorded = {
        id: newId(clock.now()),
        name: action,
        businessUid: businessUid ?? entry?.businessUid ?? null,
        subscriptionUid: subscriptionUid ?? null,
        payload: JSON.stringify({ actor, action, reason: reason ?? null, entry_id: entryId ?? null }),
      }
      await store.recordAction(recorded)
      onAction(recorded)
      return { id: recorded.id }
    },
  }
}

function requireId(id: unknown): string {
  if (typeof id === 'string' && id !== '' && !/[\0\p{Cs}]/u.test(id)) return id
  throw new MarketplaceError(
    'argument_invalid',
    'Cannot find the entry: the id must be a text that is not empty',
  )
}
