import type { PurchaseChange } from '../../../lib/index.js'
import type { Verdict } from './promises.js'
import type { EntryRow } from './rows.js'

/** The changes of a subscription in a journal, in their order. */
export interface Changes {
  uid: string
  rows: EntryRow[]
  /** The state after the last one. */
  state: string | null
}

/**
 * Checks what must hold in every journal: each change of a subscription continues from the one before, with a record that
 * is not older. Returns the changes of each subscription.
 */
export function checkChanges(
  journal: readonly EntryRow[],
  { fail }: Pick<Verdict, 'fail'>,
): Map<string, Changes> {
  const all = new Map<string, Changes & { updatedAt: number }>()
  for (const row of journal) {
    if (row.kind !== 'change') continue
    const { subscription_uid: uid, from, to, record } = JSON.parse(row.payload) as PurchaseChange
    const changes = all.get(uid) ?? { uid, rows: [], state: null, updatedAt: 0 }
    all.set(uid, changes)
    const { id } = row
    if (from !== changes.state)
      fail('order', `${uid} continues from ${from}, but was left at ${changes.state}`, id)
    const updatedAt = Date.parse(String(record?.updated_at)) || changes.updatedAt
    if (updatedAt < changes.updatedAt) fail('onward', `${uid} is back at ${record?.updated_at}`, id)
    changes.rows.push(row)
    Object.assign(changes, { state: to, updatedAt })
  }
  return all
}

/** Every acknowledged delivery is in the journal. */
export function checkAcknowledged(
  ids: Iterable<string>,
  journal: readonly EntryRow[],
  { fail, made }: Pick<Verdict, 'fail' | 'made'>,
) {
  const stored = new Set(journal.map(({ id }) => id))
  for (const id of ids) {
    made('stored')
    if (!stored.has(id)) fail('stored', `${id} was acknowledged, and is not in the journal`, id)
  }
}
