import { type Clock, SECOND } from '../../base/clock.js'
import { endsWithin } from '../../base/waiting.js'
import type { LaneClaim, ReadClaim, Store, SuspectKind, Topic } from '../../store/port/store.js'

/** For about this long suspects run one after another, before other work continues. */
const ROUND_MS = SECOND
/** The least time of other work between two rounds. */
const REST_MS = 10

/** A loop that can be made to run one item alone. */
interface Alone<Item> {
  halt(): Promise<void>
  resume(): void
  runAlone(item: Item, heldUntil: number): Promise<void>
}

/**
 * Runs suspects: work whose lease ran out, which may be what ends the process. Each runs alone: the loop of its kind is
 * halted, no suspect of the other kind runs, and no search. So if the process ends, nothing else of its kind can have ended it;
 * work of the other kind may have. What takes longer than a lease, up to an hour by the options of handlers, is not
 * waited for: other work then runs beside a suspect, but no other suspect does. docs/states.md has the states.
 */
export function createSuspectRounds(options: {
  store: Pick<Store, 'dueSuspect' | 'claimSuspectLane' | 'claimSuspectRead'>
  topics(): Topic[]
  lanes: Alone<LaneClaim> & { items(): Pick<LaneClaim, 'id'>[] }
  reads: Alone<ReadClaim> & { isPaused(): boolean }
  /** The searches of this process, which call a function of the app; undefined: it makes none. */
  searches?: Pick<Alone<unknown>, 'halt' | 'resume'> | undefined
  leaseMs: number
  pollMs: number
  clock: Clock
  onError(error: unknown): void
}) {
  const { store, topics, lanes, reads, searches, leaseMs, pollMs, clock, onError } = options
  const loops = { lane: lanes, read: reads }
  let state: 'new' | 'started' | 'closed' = 'new'
  let halted: SuspectKind | undefined
  let timer: unknown
  let running: Promise<void> | undefined
  /** A suspect runs, perhaps beside other work. Another one would count a try that this one ended. */
  let isSuspectRunning = false

  const isClosed = () => state === 'closed'

  async function round() {
    const beganAt = clock.monotonic()
    let isWorkedOn = false
    let leftMs = ROUND_MS
    try {
      do {
        const suspect = await next()
        if (suspect === null || isClosed()) break
        isWorkedOn = true
        await halt(suspect)
        const haltedAt = clock.monotonic()
        if (isClosed() || !(await runOne(suspect))) break
        leftMs -= clock.monotonic() - haltedAt
      } while (!isClosed() && leftMs > 0)
    } catch (error) {
      isWorkedOn = false
      onError(error)
    }
    resume()
    if (isClosed()) return
    const restMs = isWorkedOn ? Math.max(REST_MS, clock.monotonic() - beganAt) : pollMs
    timer = clock.setTimeout(begin, restMs)
  }

  function begin() {
    running = round()
  }

  async function next(): Promise<SuspectKind | null> {
    if (isSuspectRunning) return null
    const kinds: readonly SuspectKind[] = reads.isPaused() ? ['lane'] : ['lane', 'read']
    return store.dueSuspect({ kinds, ...ownLanes() })
  }

  /** Which lanes this process may begin: none whose handler still runs here, although its lease has run out. */
  const ownLanes = () => ({ topics: topics(), exceptKeys: lanes.items().map(({ id }) => id) })

  async function halt(kind: SuspectKind) {
    if (halted === kind) return
    resume()
    halted = kind
    // First, because a search may take long: until it has ended, the other work goes on.
    await searches?.halt()
    await endsWithin(loops[kind].halt(), leaseMs, clock)
  }

  function resume() {
    if (!halted) return
    loops[halted].resume()
    searches?.resume()
    halted = undefined
  }

  /** Resolves when the suspect has ended or takes too long. False: another process was faster, or the suspect was put off. */
  async function runOne(kind: SuspectKind): Promise<boolean> {
    const heldUntil = clock.monotonic() + leaseMs
    if (kind === 'read') {
      const claim = await store.claimSuspectRead({ leaseMs })
      if (claim) await aWhile(reads.runAlone(claim, heldUntil))
      return claim !== undefined
    }
    const claim = await store.claimSuspectLane({ leaseMs, ...ownLanes() })
    if (claim) await aWhile(lanes.runAlone(claim, heldUntil))
    return claim !== undefined
  }

  async function aWhile(suspect: Promise<void>) {
    isSuspectRunning = true
    await endsWithin(
      suspect.finally(() => {
        isSuspectRunning = false
      }),
      leaseMs,
      clock,
    )
  }

  return {
    start() {
      if (state !== 'new') return
      state = 'started'
      begin()
    },
    /**
     * Resolves when the round under way has ended, after `graceMs` at the latest: a suspect that it has just leased is
     * returned, or the stop of the process would count as an end that it caused.
     */
    async close(graceMs: number) {
      state = 'closed'
      clock.clearTimeout(timer)
      await endsWithin(Promise.resolve(running), graceMs, clock)
    },
  }
}
