import { HANDLED_FOR_MS, MAX_LAPSES, type ReadClaim, type ReadFinish } from '../../../lib/store/port/store.js'
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
    () => ({ ...fails('platform_timeout', 0), isUntried: true }),
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

  async function hasNoHandler({ create, pass }) {
    const store = await create()
    await store.open()
    await store.accept([eventOf('s1')])
    await pass(LATER)
    await store.prune(RETENTION)
  },

  async function hasNoHandlerAnyMore({ store, pass }) {
    await store.accept([eventOf('s1')])
    await pass(SECONDS)
    await store.handleTopics({ topics: [], rescueMs: 0, retireMs: 10 })
    await pass(LATER)
    await store.prune(RETENTION)
  },

  ...[suspect, takenBack, waiting].map(
    (become) =>
      async function isSetAside(lab: Lab) {
        const installed = 'application/installed'
        await lab.store.accept([
          eventOf('s1', { key: 'empty then' }),
          eventOf('s2', { key: 'due then' }),
          eventOf('s2', { key: 'due then', name: installed }),
        ])
        await become(lab)
        await lab.pass(SECONDS)
        await lab.store.handleTopics({ topics: [`event:${installed}`], rescueMs: 0, retireMs: 10 })
      },
  ),

  async function isNamedAgain({ store, pass }) {
    await pass(2 * HANDLED_FOR_MS)
    await handling(store, EVERY_TOPIC)
  },
]

/** The due lanes become suspect. */
async function suspect({ store, pass }: Lab) {
  const keys = (await leasedEntries(store, { leaseMs: SHORT })).map(({ key }) => key)
  await pass(SHORT + 30)
  await store.claimSuspectLane({ topics: EVERY_TOPIC, exceptKeys: keys, leaseMs: LONG })
}

/** The due lanes are taken back, and their leases would have run out. */
async function takenBack({ store, pass }: Lab) {
  for (const { id } of await leasedEntries(store)) await store.replayEntry(id)
  await pass(LONG)
}

/** The heads of the due lanes fail. */
async function waiting({ store }: Lab) {
  const entries = await leasedEntries(store)
  await finish(
    store,
    entries.map((entry) => ending(entry, RETRY)),
  )
}

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
