import type { VirtualClock } from '../machine/virtual-clock.js'
import { type CallFault, createPlatform } from './platform.js'

const FAULTS_OF_READS = ['unauthorized', 'older', 'empty'] as const
/** The faults that `fail` takes. */
export const CALL_FAULTS = [
  ...(['network', 'failing', 'html', 'hang', 'throttle'] as const),
  ...FAULTS_OF_READS,
] satisfies CallFault[]
type Fault = (typeof CALL_FAULTS)[number]

/** A platform whose next calls fail as a test says. */
export function createFailingPlatform(clock: VirtualClock) {
  const faults: Fault[] = []
  const shownEmpty = new Set<string>()
  const served = new Map<string, Set<string>>()
  let hidden: readonly string[] = []
  let reads = 0
  let [lagMs, latencyMs] = [0, 10]

  /** The next fault that applies to this kind of call. */
  function nextFault(isRead: boolean): Fault | undefined {
    const fault = faults.find((each) => isRead || !FAULTS_OF_READS.some((ofRead) => ofRead === each))
    if (fault) faults.splice(faults.indexOf(fault), 1)
    return fault
  }

  const platform = createPlatform({
    clock,
    lagMs: () => lagMs,
    latencyMs: () => [0, latencyMs],
    faultOf({ kind, of }) {
      const fault = nextFault(kind === 'read')
      if (kind === 'token') return fault
      reads++
      if (hidden.includes(of)) return 'empty'
      // A record that is hidden three times over a minute counts as missing, so this fault never hides one twice in a row.
      const isEmpty = fault === 'empty' && !shownEmpty.has(of)
      if (isEmpty) shownEmpty.add(of)
      else shownEmpty.delete(of)
      return fault === 'empty' && !isEmpty ? undefined : fault
    },
    onShown: ({ uid, state }) => void served.set(uid, (served.get(uid) ?? new Set()).add(state)),
  })

  return {
    ...platform,
    fail: (fault: Fault, times: number) => void faults.push(...Array<Fault>(times).fill(fault)),
    /** Reads find none of these subscriptions any more, but all others. */
    hide(uids: readonly string[]) {
      hidden = uids
    },
    lag(ms: number) {
      lagMs = ms
    },
    slow(ms: number) {
      latencyMs = ms
    },
    /** Ends all faults; records hidden by a lag become visible at their time. */
    heal() {
      faults.splice(0)
      lagMs = 0
      latencyMs = 10
    },
    reads: () => reads,
    /** Whether any read has returned this state. */
    hasServed: (uid: string, state: string) => served.get(uid)?.has(state) ?? false,
  }
}
