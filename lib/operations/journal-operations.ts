import { z } from 'zod'
import type { Clock } from '../clock.js'
import { MarketplaceError } from '../errors.js'
import { newId } from '../ids.js'
import { identifier, storable } from '../record.js'
import { checked, checkedFilter, type JournalFilter, limit } from '../store/entry-filter.js'
import type { Store } from '../store/store.js'
import { nextTurn } from '../waiting.js'
import { type JournalEntry, publicEntries, publicEntry } from './public-entry.js'

/** What `journal.replayAll` has done, or with `dryRun` would do. */
export interface ReplaySummary {
  /** Entries that fit the filter, counted up to 10,000. */
  matched: number
  /** Of those, the ones that were handed over again: the oldest, at most `limit`. */
  replayed: number
  /** Their ids, or with `dryRun` those that would be, oldest first. */
  ids: string[]
}

/** What a person did, to be kept in the journal. */
export interface Action {
  /** Who did it. */
  actor: string
  /** What it was, such as `replay` or `refresh`; `erase` is kept for erasures. */
  action: string
  business_uid?: string | number
  /** The entry it was done to; its business is the action's unless `business_uid` is given. */
  entry_id?: string
  reason?: string
}

const MOST_MATCHED = 10_000
const PAGE = 250

const text = z.string().min(1).max(500).transform(storable)
const ACTION = z.strictObject({
  actor: text,
  action: text,
  business_uid: identifier.optional(),
  entry_id: text.optional(),
  reason: text.optional(),
})
const REPLAY = z.strictObject({ limit: limit.optional(), dryRun: z.boolean().optional() })

/** The journal for people: to look at, to replay, and to keep what they did. */
export function createJournalOperations(options: {
  store: Pick<Store, 'listEntries' | 'getEntry' | 'replayEntry' | 'recordAction'>
  clock: Clock
}) {
  const { store, clock } = options

  return {
    async list(filter: JournalFilter = {}): Promise<JournalEntry[]> {
      return publicEntries(await store.listEntries(checkedFilter(filter)))
    },

    async get(id: string): Promise<JournalEntry | undefined> {
      const entry = await store.getEntry(requireId(id))
      return entry && publicEntry(entry)
    },

    async replay(id: string): Promise<boolean> {
      return store.replayEntry(requireId(id))
    },

    async replayAll(
      filter: Omit<JournalFilter, 'limit' | 'before'>,
      given: { limit?: number; dryRun?: boolean } = {},
    ): Promise<ReplaySummary> {
      const { limit: most = 100, dryRun = false } = checked(REPLAY, given, 'replay')
      const { limit: listed, before: _, ...which } = checkedFilter(filter)
      if (which.status === undefined || which.kind === 'action' || listed !== undefined || _ !== undefined)
        throw new MarketplaceError(
          'argument_invalid',
          'Cannot replay: expected a filter with a status, and without limit, before and the kind action',
        )
      const matched: string[] = []
      for (let before: string | undefined; matched.length < MOST_MATCHED; ) {
        const page = await store.listEntries({
          ...which,
          limit: PAGE,
          ...(before === undefined ? {} : { before }),
        })
        matched.push(...page.filter(({ kind }) => kind !== 'action').map(({ id }) => id))
        before = page.at(-1)?.id
        if (page.length < PAGE) break
        await nextTurn()
      }
      // The oldest first, so that those of one lane are handled in their order.
      const ids = matched.slice(-most).reverse()
      const replayed: string[] = []
      for (const id of dryRun ? [] : ids) if (await store.replayEntry(id)) replayed.push(id)
      return { matched: matched.length, replayed: replayed.length, ids: dryRun ? ids : replayed }
    },

    async recordAction(given: Action): Promise<{ id: string }> {
      const { actor, action, business_uid, entry_id, reason } = checked(ACTION, given, 'record the action')
      if (action === 'erase')
        throw new MarketplaceError('argument_invalid', 'Cannot record the action: erase() itself records it')
      const entry = entry_id === undefined ? undefined : await store.getEntry(entry_id)
      const id = newId(clock.now())
      await store.recordAction({
        id,
        name: action,
        businessUid: business_uid ?? entry?.businessUid ?? null,
        payload: JSON.stringify({ actor, action, reason: reason ?? null, entry_id: entry_id ?? null }),
      })
      return { id }
    },
  }
}

function requireId(id: unknown): string {
  if (typeof id === 'string' && id !== '' && !/[\0\p{Cs}]/u.test(id)) return id
  throw new MarketplaceError('argument_invalid', 'Cannot use id: expected the id of an entry')
}
