import { MINUTE, SECOND } from '../../../lib/base/clock.js'
import { createNotifications } from '../../../lib/postgres/notifications.js'
import { createLifeCycle } from '../../../lib/store/life-cycle.js'
import { createRunningItems } from '../../../lib/work/leases/lease.js'
import { createLeaseLoop } from '../../../lib/work/leases/lease-loop.js'
import { createSuspectRounds } from '../../../lib/work/leases/suspects.js'
import { CHANNEL, createListeningServer } from '../engines/listening-server.js'
import { createVirtualClock } from '../machine/virtual-clock.js'
import { gate } from '../until.js'
import { type Explored, explore } from './explore.js'

/** The transitions of the machines in memory, found by trying every short sequence of inputs. */
export const MACHINES: Record<string, () => Promise<ReadonlySet<string>>> = {
  'life cycle of a store': () => explore(lifeCycle, 4),
  lease: () => explore(lease, 3),
  'lease loop': () => explore(leaseLoop, 4),
  'suspect rounds': () => explore(suspectRounds, 4),
  listener: () => explore(listener, 7),
}

function lifeCycle(): Explored<'open' | 'succeed' | 'fail' | 'close'> {
  let opening: ReturnType<typeof gate<void>> | undefined
  const cycle = createLifeCycle({
    begin: () => {
      opening = gate()
      return opening.opened
    },
    end: async () => {},
    endLongCalls() {},
    isDataError: () => false,
  })
  const inputs = {
    open: () => void cycle.calls.open().catch(() => {}),
    succeed: () => opening?.open(),
    fail: () => opening?.fail(new Error('no disk')),
    close: () => void cycle.calls.close(),
  }
  return {
    inputs: () => ['open', 'close', ...(opening ? (['succeed', 'fail'] as const) : [])],
    async give(input) {
      inputs[input]()
      await rest()
    },
    async state() {
      if (cycle.isClosed()) return 'closed'
      let found = 'opening'
      cycle
        .whileOpen(async () => {
          found = 'open'
        })
        .catch(() => {
          found = 'new'
        })
      await rest()
      return found
    },
  }
}

function lease(): Explored<'confirm' | 'refuse' | 'fail' | 'hang' | 'end'> {
  const clock = handClock()
  const item = gate()
  let lost: AbortSignal | undefined
  let renew: () => Promise<boolean> = async () => true
  const running = createRunningItems<string>({
    leaseMs: 30 * SECOND,
    renewEveryMs: 10 * SECOND,
    clock,
    run(_item, { signal }) {
      lost = signal
      return item.opened
    },
    renew: () => renew(),
    onEnd() {},
    onError() {},
  })
  running.begin(['item'], 30 * SECOND)
  const renewals = {
    confirm: async () => true,
    refuse: async () => false,
    fail: () => Promise.reject(new Error('no database')),
    hang: () => new Promise<never>(() => {}),
  }
  return {
    inputs: () => ['confirm', 'refuse', 'fail', 'hang', 'end'],
    async give(input) {
      if (input === 'end') {
        item.open()
        return rest()
      }
      renew = renewals[input]
      await clock.advance(input === 'hang' ? 30 * SECOND : 10 * SECOND)
    },
    async state() {
      if (lost?.aborted) return 'lost'
      return clock.nextInMs() === null ? 'ended' : 'held'
    },
  }
}

function leaseLoop(): Explored<
  'start' | 'find an item' | 'find nothing' | 'end the item' | 'wait' | 'halt' | 'resume' | 'close'
> {
  const clock = handClock()
  let claim: ReturnType<typeof gate<string[]>> | undefined
  let item: ReturnType<typeof gate<void>> | undefined
  const loop = createLeaseLoop<string>({
    concurrency: 1,
    pollMs: SECOND,
    leaseMs: 1_000 * MINUTE,
    renewEveryMs: 500 * MINUTE,
    clock,
    claim() {
      claim = gate()
      return claim.opened.then((items) => ({ items, isAll: true }))
    },
    run() {
      item = gate()
      return item.opened
    },
    giveBack: async () => {},
    renew: async () => true,
    onError() {},
  })
  const claims = (items: string[]) => {
    claim?.open(items)
    claim = undefined
  }
  const inputs = {
    start: () => loop.start(),
    'find an item': () => claims(['item']),
    'find nothing': () => claims([]),
    'end the item'() {
      item?.open()
      item = undefined
    },
    wait: () => clock.advance(2 * SECOND),
    halt: () => void loop.halt(),
    resume: () => loop.resume(),
    close: () => void loop.close(MINUTE),
  }
  /** Whether the loop then looks for work. */
  const looksAfter = async (work: () => void) => {
    work()
    await clock.advance(2 * SECOND)
    return claim !== undefined
  }
  return {
    inputs: () => [
      'start',
      'wait',
      'halt',
      'resume',
      'close',
      ...(claim ? (['find an item', 'find nothing'] as const) : []),
      ...(item ? (['end the item'] as const) : []),
    ],
    async give(input) {
      await inputs[input]()
      await rest()
    },
    async state() {
      if (claim) return 'looking'
      // A slot must be free for the loop to look.
      inputs['end the item']()
      await rest()
      if (claim || (await looksAfter(() => loop.wake()))) return 'waiting'
      if (await looksAfter(() => loop.resume())) return 'halted'
      return (await looksAfter(() => loop.start())) ? 'new' : 'closed'
    },
  }
}

function suspectRounds(): Explored<
  'start' | 'find a suspect' | 'find none' | 'fail' | 'end the suspect' | 'wait' | 'close'
> {
  const clock = handClock()
  let choice: ReturnType<typeof gate<'lane' | null>> | undefined
  let suspect: ReturnType<typeof gate<void>> | undefined
  const loop = {
    halt: async () => {},
    resume() {
      suspect = undefined
    },
    runAlone() {
      suspect = gate()
      return suspect.opened
    },
  }
  const rounds = createSuspectRounds({
    store: {
      dueSuspect() {
        choice = gate()
        return choice.opened
      },
      claimSuspectLane: async () => ({ id: 'lane', leaseToken: 'token', urgency: 1, lapses: 0, entries: [] }),
      claimSuspectRead: async () => undefined,
    },
    topics: () => [],
    lanes: { ...loop, items: () => [] },
    reads: { ...loop, isPaused: () => false },
    leaseMs: SECOND,
    pollMs: SECOND,
    clock,
    onError() {},
  })
  const chooses = (kind: 'lane' | null) => {
    choice?.open(kind)
    choice = undefined
  }
  const inputs = {
    start: () => rounds.start(),
    'find a suspect': () => chooses('lane'),
    'find none': () => chooses(null),
    fail() {
      choice?.fail(new Error('no database'))
      choice = undefined
    },
    'end the suspect'() {
      suspect?.open()
      suspect = undefined
    },
    wait: () => clock.advance(1.5 * SECOND),
    close: () => void rounds.close(MINUTE),
  }
  return {
    inputs: () => [
      'start',
      'wait',
      'close',
      ...(choice ? (['find a suspect', 'find none', 'fail'] as const) : []),
      ...(suspect ? (['end the suspect'] as const) : []),
    ],
    async give(input) {
      await inputs[input]()
      await rest()
    },
    async state() {
      if (choice) return 'choosing'
      if (suspect) return 'alone'
      if (clock.nextInMs() !== null) return 'resting'
      inputs.start()
      await rest()
      return choice ? 'new' : 'closed'
    },
  }
}

function listener(): Explored<'start' | 'connect' | 'fail' | 'lose' | 'wait for an echo' | 'wait' | 'close'> {
  const clock = handClock()
  const server = createListeningServer()
  let acquiring: ReturnType<typeof gate<void>> | undefined
  let isFirst = true
  let hints = 0
  const made = createNotifications({
    connections: {
      works: async () => {},
      close: async () => {},
      async acquire() {
        // The second connection of a try sends the echo.
        if (isFirst) {
          acquiring = gate()
          await acquiring.opened
        }
        isFirst = !isFirst
        return server.acquire()
      },
    },
    channel: CHANNEL,
    clock,
    warn() {},
  })
  const start = () => made.start(() => void hints++)
  const connects = async (isPooler: boolean) => {
    server.isPooler = isPooler
    acquiring?.open()
    acquiring = undefined
    await rest()
    if (isPooler) await clock.advance(2 * SECOND)
  }
  const inputs = {
    start,
    connect: () => connects(false),
    'wait for an echo': () => connects(true),
    fail() {
      acquiring?.fail(new Error('no connection'))
      acquiring = undefined
    },
    lose() {
      hints = 0
      isFirst = true
      server.lose()
    },
    wait() {
      isFirst = true
      return clock.advance(10 * MINUTE)
    },
    close: () => made.close(),
  }
  return {
    inputs: () => [
      'start',
      'close',
      ...(acquiring
        ? (['connect', 'fail', 'wait for an echo'] as const)
        : hints > 0
          ? []
          : (['wait'] as const)),
      ...(hints > 0 ? (['lose'] as const) : []),
    ],
    async give(input) {
      await inputs[input]()
      await rest()
    },
    async state() {
      if (acquiring) return 'connecting'
      const nextInMs = clock.nextInMs()
      if (nextInMs === null) {
        start()
        await rest()
        return acquiring ? 'new' : 'closed'
      }
      if (hints > 0) return 'listening'
      return nextInMs > MINUTE ? 'off' : 'waiting'
    },
  }
}

/** A clock that stands still until `advance`, for one process. */
function handClock() {
  const virtual = createVirtualClock({ startAt: 0, quietTurns: 1 })
  return { ...virtual.forProcess(), advance: virtual.advance, nextInMs: virtual.nextInMs }
}

/** Everything that is under way comes to rest. */
const rest = () => new Promise<void>((resolve) => setImmediate(resolve))
