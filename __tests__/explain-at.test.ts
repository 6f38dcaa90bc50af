import { describe, expect, it } from '@jest/globals'
import { createExplainAt } from '../lib/operations/explain-at.js'
import type { JournalEntry, StoredSubscription } from '../lib/store/store.js'

const DAY = 86_400_000
const NOW = Date.parse('2026-06-30T00:00:00Z')
const RETENTION = { doneMs: 7 * DAY, changesMs: 90 * DAY, deadMs: 30 * DAY }

describe('the answer at an earlier time', () => {
  it('is the result of the last change before that time, of each subscription', async () => {
    const past = world({
      changes: [
        change(10, 's1', null, 'suspended'),
        change(5, 's1', 'suspended', 'purchased'),
        change(8, 's2', null, 'canceled'),
      ],
      rows: [row('s1', 'purchased', 10), row('s2', 'canceled', 8)],
    })
    expect(await past(9)).toEqual(['not_purchased', 'change s1 suspended'])
    expect(await past(7)).toEqual(['not_purchased', 'change s1 suspended', 'change s2 canceled'])
    expect(await past(4)).toEqual(['purchased', 'change s1 purchased', 'change s2 canceled'])
    expect(await past(11)).toEqual(['not_recorded', 'not_recorded null'])
  })

  it('is not known if the retention of a change in between has ended', async () => {
    const past = world({
      changes: [change(50, 's1', null, 'purchased'), change(3, 's1', 'suspended', 'purchased')],
      rows: [row('s1', 'purchased', 50)],
    })
    expect(await past(10)).toEqual(['not_recorded', 'not_recorded s1'])
    expect(await past(1)).toEqual(['purchased', 'change s1 purchased'])
  })

  it('is the current answer if nothing has changed since and all later changes are stored', async () => {
    const past = world({ changes: [], rows: [row('s1', 'purchased', 400)] })
    expect(await past(29)).toEqual(['purchased', 'record s1'])
    expect(await past(31)).toEqual(['not_recorded', 'not_recorded s1'])
  })

  it('is not known for a subscription that was announced but not read yet', async () => {
    const past = world({ changes: [change(5, 's1', null, 'purchased')], rows: [row('s1', 'purchased', 9)] })
    expect(await past(7)).toEqual(['not_read_yet', 'record s1'])
  })

  it('does not count subscriptions that moved to another business, and names those that are missing or revoked', async () => {
    const past = world({
      changes: [
        change(20, 's1', null, 'purchased'),
        change(9, 's1', 'purchased', null, 'moved'),
        change(20, 's2', null, 'purchased'),
        change(5, 's2', 'purchased', null, 'revoked'),
      ],
      rows: [row('s2', null, 20)],
    })
    expect(await past(10)).toEqual(['purchased', 'change s2 purchased', 'change s1 purchased'])
    expect(await past(4)).toEqual(['revoked', 'change s2 null', 'change s1 null'])
  })

  it('E27 counts a purchase behind any number of forged subscriptions', async () => {
    const forged = Array.from({ length: 20_000 }, (_, i) => ({
      ...row(`forged ${i}`, null, 9),
      record: null,
    }))
    const past = world({ changes: [], rows: [...forged, row('s1', 'purchased', 400)] })
    const [reason, ...evidence] = await past(5)
    expect(reason).toBe('purchased')
    expect(evidence.at(-1)).toBe('record s1')
    expect(evidence).toHaveLength(1_001)
  })

  it('is yes if one subscription gives access, even if others are unknown', async () => {
    const past = world({
      changes: [change(9, 's1', null, 'purchased')],
      rows: [row('s1', 'purchased', 9), row('s2', 'canceled', 300)],
    })
    expect(await past(8)).toEqual(['purchased', 'change s1 purchased', 'record s2'])
    const older = world({
      changes: [change(60, 's1', null, 'purchased')],
      rows: [row('s1', 'purchased', 60), row('s2', 'canceled', 300)],
    })
    expect(await older(50)).toEqual(['purchased', 'change s1 purchased', 'not_recorded s2'])
  })
})

/** Asks for the answer this many days ago. Returns its reason and its evidence. */
function world({ changes, rows }: { changes: JournalEntry[]; rows: StoredSubscription[] }) {
  const newest = [...changes].sort((a, b) => Date.parse(b.receivedAt) - Date.parse(a.receivedAt))
  const explainAt = createExplainAt({
    store: {
      listEntries: async () => newest,
      async listSubscriptions({ after, limit }) {
        const first = rows.findIndex(({ subscriptionUid }) => subscriptionUid === after) + 1
        return rows.slice(first, first + limit)
      },
    },
    rules: {
      purchasableUids: ['item'],
      entitledWhen: ({ purchase_state }) => purchase_state === 'purchased',
      maxStaleMs: DAY,
    },
    retention: RETENTION,
    clock: { now: () => NOW } as never,
  })
  return async (daysAgo: number) => {
    const { reason, restsOn = [] } = await explainAt('b1', { at: new Date(NOW - daysAgo * DAY) })
    const words = restsOn.map((each) =>
      [each.kind, each.subscription_uid, ...(each.kind === 'change' ? [each.to] : [])].map(String).join(' '),
    )
    return [reason, ...words]
  }
}

function change(
  daysAgo: number,
  uid: string,
  from: string | null,
  to: string | null,
  gone: string | null = null,
): JournalEntry {
  const record = { uid, business_uid: 'b1', purchasable_uid: 'item', purchase_state: to ?? from }
  return {
    id: `${uid} ${daysAgo}`,
    kind: 'change',
    name: '',
    status: 'done',
    businessUid: 'b1',
    subscriptionUid: uid,
    payload: { from, to, gone, record },
    issues: null,
    attempts: 1,
    error: null,
    receivedAt: new Date(NOW - daysAgo * DAY).toISOString(),
    dueAt: null,
  }
}

function row(subscriptionUid: string, state: string | null, createdDaysAgo: number): StoredSubscription {
  const purchase_state = state ?? 'purchased'
  return {
    subscriptionUid,
    businessUid: 'b1',
    purchasableUid: 'item',
    quiet: false,
    record: { uid: subscriptionUid, business_uid: 'b1', purchasable_uid: 'item', purchase_state },
    state,
    gone: state === null ? 'revoked' : null,
    readAt: NOW,
    requestedAt: null,
    owedSince: null,
    generation: 1,
    settledGeneration: 0,
    pending: false,
    verifying: false,
    failure: null,
    refreshAt: NOW + DAY,
    candidateBusinessUid: null,
    installAt: null,
    uninstalledAt: null,
    createdAt: NOW - createdDaysAgo * DAY,
  }
}
