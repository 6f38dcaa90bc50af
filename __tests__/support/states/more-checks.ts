import { HANDLED_FOR_MS, MAX_LAPSES, type ReadClaim, type ReadFinish } from '../../../lib/store/port/store.js'
import {
  DEAD,
  EVERY_TOPIC,
  eventOf,
  fails,
  LATER,
  type Lab,
  LONG,
  retry,
  SHORT,
  shows,
} from '../conformance/lab.js'

const MINUTES = 60_000
const SECONDS = 1_000
const DAYS = 86_400_000
const SOON = MINUTES
const RETENTION = { eventsMs: SOON, changesMs: SOON, actionsMs: SOON, deadMs: SOON }

/** Transitions of rows that no check of the conformance suite makes. */
export const MORE_CHECKS: readonly ((lab: Lab) => Promise<void>)[] = [
  async function verifies(lab) {
    await lab.request('s1')
    for (const pause of [0, SOON + 100]) {
      await lab.pass(pause)
      await lab.succeed(await lab.claim(), 'purchased', { verifying: true, nextInMs: SOON })
    }
    await lab.request('s1')
  },

  ...[
    (claim: ReadClaim) => shows(claim, 'purchased', { verifying: true }),
    (claim: ReadClaim) => shows(claim, 'purchased'),
    () => fails('platform_timeout'),
    () => fails('platform_timeout', null),
    () => ({ ...fails('platform_timeout', 0), isUntried: true }),
  ].map((finishOf: (claim: ReadClaim) => ReadFinish) => async (lab: Lab) => {
    const claim = await alone(lab)
    await lab.finishRead(claim, finishOf(claim))
  }),

  async function isRequestedDuringAReadAlone(lab) {
    const claim = await alone(lab)
    await lab.request('s1')
    await lab.succeed(claim, 'purchased')
  },

  async function isUnwantedForLong(lab) {
    for (const uid of ['b1', 'b2', 'b3']) await lab.requestSearch(uid, 'question')
    const claims = await lab.claimSearches({ limit: 2, installLimit: 0, leaseMs: SHORT })
    const finish = { kind: 'answered', found: [], failure: null, nextInMs: 40 * DAYS } as const
    if (claims[0]) await lab.finishSearch(claims[0], finish)
    await lab.pass(31 * DAYS)
    await lab.prune(RETENTION)
  },

  async function isPutOff(lab) {
    await alone(lab, SHORT)
    for (let lapses = 0; lapses < MAX_LAPSES; lapses++) {
      await lab.pass(SHORT + 30)
      await lab.claimSuspectRead({ leaseMs: SHORT })
    }
    await lab.pass(10 * MINUTES)
    await lab.claimSuspectRead({ leaseMs: LONG })
  },

  async function isHandledAlone(lab) {
    for (const result of [retry(SOON), DEAD]) await lab.end([await entryAlone(lab, result.kind)], result)
  },

  async function isReplayedWhileAlone(lab) {
    await lab.replayEntry((await entryAlone(lab, 's1')).id)
  },

  async function hasNoHandler(first) {
    const lab = await first.withoutHandlers()
    await lab.accept([eventOf('s1')])
    await lab.pass(LATER)
    await lab.prune(RETENTION)
  },

  async function hasNoHandlerAnyMore(lab) {
    await lab.accept([eventOf('s1')])
    await lab.pass(SECONDS)
    await lab.handleTopics({ topics: [], rescueMs: 0, retireMs: 10 })
    await lab.pass(LATER)
    await lab.prune(RETENTION)
  },

  ...[suspect, takenBack, waiting].map(
    (become) =>
      async function isSetAside(lab: Lab) {
        const installed = 'application/installed'
        await lab.accept([
          eventOf('s1', { key: 'empty then' }),
          eventOf('s2', { key: 'due then' }),
          eventOf('s2', { key: 'due then', name: installed }),
        ])
        await become(lab)
        await lab.pass(SECONDS)
        await lab.handleTopics({ topics: [`event:${installed}`], rescueMs: 0, retireMs: 10 })
      },
  ),

  async function isNamedAgain(lab) {
    await lab.pass(2 * HANDLED_FOR_MS)
    await lab.handle(EVERY_TOPIC)
  },
]

/** The due lanes become suspect. */
async function suspect(lab: Lab) {
  const keys = (await lab.lease({ leaseMs: SHORT })).map(({ key }) => key)
  await lab.pass(SHORT + 30)
  await lab.claimSuspectLane({ topics: EVERY_TOPIC, exceptKeys: keys, leaseMs: LONG })
}

/** The due lanes are taken back, and their leases would have run out. */
async function takenBack(lab: Lab) {
  for (const { id } of await lab.lease()) await lab.replayEntry(id)
  await lab.pass(LONG)
}

/** The heads of the due lanes fail. */
async function waiting(lab: Lab) {
  await lab.end(await lab.lease(), retry(SOON))
}

/** Leases a read alone, after its first lease ran out. */
async function alone(lab: Lab, leaseMs = LONG): Promise<ReadClaim> {
  await lab.request('s1')
  await lab.claim({ leaseMs: SHORT })
  await lab.pass(SHORT + 30)
  return (await lab.claimSuspectRead({ leaseMs })) as ReadClaim
}

/** Leases an entry alone, after its first lease ran out. */
async function entryAlone(lab: Lab, uid: string) {
  await lab.accept([eventOf(uid)])
  await lab.leaseOne({ leaseMs: SHORT })
  await lab.pass(SHORT + 30)
  return lab.leaseOne()
}
