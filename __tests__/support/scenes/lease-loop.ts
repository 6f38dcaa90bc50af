import { SECOND } from '../../../lib/base/clock.js'
import { createLeaseLoop } from '../../../lib/work/leases/lease-loop.js'
import { countingClock } from '../machine/counting-clock.js'
import { createVirtualClock } from '../machine/virtual-clock.js'
import { gate } from '../until.js'

export const POLL_MS = SECOND

/** A loop that has searched for work once. */
export async function started(options: Parameters<typeof loopOver>[0] = {}) {
  const made = loopOver(options)
  made.loop.start()
  await made.clock.rest()
  return made
}

/**
 * A loop over items that the test makes due and finishes. The result also has the calls that the loop made of its
 * store.
 */
export function loopOver({
  claims,
  knowsAll = false,
  isRenewed = true,
  ...options
}: {
  claims?(): Promise<void> | void
  concurrency?: number
  pollMs?: number
  isWaiting?(item: string): boolean
  /** Whether a claim reports that nothing else is due once it has leased less than its limit. */
  knowsAll?: boolean
  /** Whether the store still knows the lease at a renewal. */
  isRenewed?: boolean
} = {}) {
  const virtual = createVirtualClock({ isBusy: () => false })
  const counting = countingClock(virtual.forProcess())
  const waiting: string[] = []
  const ends = new Map<string, ReturnType<typeof gate<void>>>()
  const looks: { at: number; limit: number }[] = []
  const errors: unknown[] = []
  const aborted: string[] = []
  const renewed: string[] = []
  const returned: string[] = []
  const leaves = new Map<string, () => void>()
  let held: ReturnType<typeof gate<void>> | undefined
  const loop = createLeaseLoop<string>({
    concurrency: 1,
    pollMs: POLL_MS,
    ...options,
    async claim(limit) {
      looks.push({ at: virtual.now(), limit })
      await claims?.()
      await held?.opened
      const items = waiting.splice(0, limit)
      return { items, isAll: knowsAll && items.length < limit }
    },
    async run(item, { signal, leaveSlot }) {
      signal.addEventListener('abort', () => aborted.push(item))
      const end = gate()
      ends.set(item, end)
      leaves.set(item, leaveSlot)
      await end.opened
    },
    async giveBack(item, { signal }) {
      returned.push(item)
      if (signal.aborted) aborted.push(`${item} before it began`)
    },
    async renew(item) {
      renewed.push(item)
      return isRenewed
    },
    leaseMs: 60 * SECOND,
    renewEveryMs: 20 * SECOND,
    clock: counting.clock,
    onError: (error) => void errors.push(error),
  })
  const hold = () => {
    held = gate()
  }
  hold.release = () => {
    held?.open()
    held = undefined
  }
  return {
    loop,
    clock: { ...virtual, timers: () => counting.timers.armed },
    begunAt: virtual.now(),
    lookedAt: () => loop.lookedAt(),
    looks,
    errors,
    aborted,
    renewed,
    returned,
    hold,
    /** The item is being written, and leaves its slot. */
    leaveSlot: (item: string) => leaves.get(item)?.(),
    due: (...items: string[]) => void waiting.push(...items),
    /** Makes the items due, and lets the loop look for them. */
    async run(...items: string[]) {
      waiting.push(...items)
      loop.wake()
      await virtual.advance(10)
    },
    end(item: string, error?: Error) {
      if (error) ends.get(item)?.fail(error)
      else ends.get(item)?.open()
    },
  }
}
