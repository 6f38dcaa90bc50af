import { MAX_LAPSES, type ReadClaim, type ReadFinish } from '../../../lib/store/store.js'
import {
  claimed,
  EVERY_TOPIC,
  ending,
  eventOf,
  fails,
  finish,
  handling,
  LATER,
  type Lab,
  LONG,
  leasedEntries,
  leasedEntry,
  named,
  SHORT,
  shows,
} from '../conformance/lab.js'

const MINUTES = 60_000
const SECONDS = 1_000
const SOON = MINUTES
const RETRY = { kind: 'retry', inMs: SOON, error: 'it failed' } as const
const RETENTION = { eventsMs: SOON, changesMs: SOON, deadMs: SOON }

/** Transitions of rows that no check of the conformance suite makes. */
export const MORE_CHECKS: readonly ((lab: Lab) => Promise<void>)[] = [
  async function verifies(lab) {
    await request(lab)
    const finishes = (claim: ReadClaim) => shows(claim, 'purchased', { verifying: true, nextInMs: SOON })
    await finishNext(lab, finishes)
    await lab.pass(SOON + 100)
    await finishNext(lab, finishes)
    await request(lab)
  },

  ...[
    (claim: ReadClaim) => shows(claim, 'purchased', { verifying: true }),
    (claim: ReadClaim) => shows(claim, 'purchased'),
    () => fails('platform_timeout'),
    () => fails('platform_timeout', null),
  ].map((finishes) => async (lab: Lab) => {
    await finishNext(lab, finishes, await alone(lab))
  }),

  async function isRequestedDuringAReadAlone(lab) {
    const claim = await alone(lab)
    await request(lab)
    await finishNext(lab, (each) => shows(each, 'purchased'), claim)
  },

  async function isPutOff(lab) {
    await alone(lab, SHORT)
    for (let lapses = 0; lapses < MAX_LAPSES; lapses++) {
      await lab.pass(SHORT + 30)
      await lab.store.claimSuspectRead({ leaseMs: SHORT })
    }
    await lab.pass(10 * MINUTES)
    await lab.store.claimSuspectRead({ leaseMs: LONG })
  },

  async function isOfAnotherItemForLong(lab) {
    const other = {
      kind: 'other_item',
      subscriptionUid: 's1',
      businessUid: 'b1',
      purchasableUid: 'x',
    } as const
    await lab.store.accept([eventOf('s1', { refresh: other })])
    await lab.pass(LATER)
    await lab.store.prune(RETENTION)
  },

  async function isHandledAlone(lab) {
    for (const result of [RETRY, { kind: 'dead', error: 'gave up' } as const]) {
      await lab.store.accept([eventOf(`s ${result.kind}`)])
      await leasedEntry(lab.store, { leaseMs: SHORT })
      await lab.pass(SHORT + 30)
      const entry = await leasedEntry(lab.store)
      await finish(lab.store, [ending(entry, result)])
    }
  },

  async function isReplayedWhileAlone(lab) {
    await lab.store.accept([eventOf('s1')])
    await leasedEntry(lab.store, { leaseMs: SHORT })
    await lab.pass(SHORT + 30)
    const { id } = await leasedEntry(lab.store)
    await lab.store.replayEntry(id)
  },

  async function hasNoHandler(lab) {
    const store = await lab.create()
    await store.open()
    await handling(store, ['unrecognised'])
    await lab.pass(2 * MINUTES)
    await handling(store, ['unrecognised'])
    await store.accept([eventOf('s1'), eventOf('s2')])
    await lab.pass(LATER)
    await store.prune(RETENTION)
  },

  async function isReplayedWithAndWithoutItsHandler(lab) {
    const store = await lab.create()
    await store.open()
    await handling(store, ['unrecognised'])
    await lab.pass(2 * MINUTES)
    await handling(store, ['unrecognised'])
    const events = [eventOf('s1'), eventOf('s2'), eventOf('s3')]
    await store.accept(events)
    await handling(store, EVERY_TOPIC)
    for (const { id } of events) await store.replayEntry(id)
    const results = [{ kind: 'done' }, { kind: 'dead', error: 'gave up' }, RETRY] as const
    const entries = await leasedEntries(store)
    await finish(
      store,
      entries.map((entry, i) => ending(entry, results[i] as (typeof results)[number])),
    )
    await lab.pass(SECONDS)
    await store.handleTopics({ topics: [], rescueMs: 0, retireMs: 10 })
    for (const { id } of events) await store.replayEntry(id)
  },
]

function request({ store }: Lab) {
  return store.requestRefresh(named('s1'))
}

async function finishNext(lab: Lab, finishes: (claim: ReadClaim) => ReadFinish, held?: ReadClaim) {
  const claim = held ?? (await claimed(lab.store))
  await lab.store.finishRead(claim, finishes(claim))
}

/** Leases a read alone, after its first lease ran out. */
async function alone(lab: Lab, leaseMs = LONG): Promise<ReadClaim> {
  await request(lab)
  await claimed(lab.store, { leaseMs: SHORT })
  await lab.pass(SHORT + 30)
  return (await lab.store.claimSuspectRead({ leaseMs })) as ReadClaim
}
