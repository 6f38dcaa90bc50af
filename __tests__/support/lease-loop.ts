import { SECOND } from '../../lib/clock.js'
import { createLeaseLoop } from '../../lib/work/lease-loop.js'
import { gate } from './until.js'
import { createVirtualClock } from './virtual-clock.js'

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
  ...options
}: {
  claims?(): Promise<void> | void
  concurrency?: number
  pollMs?: number
  maxWaiting?: number
  isWaiting?(item: string): boolean
  ahead?(): number
  isExhaustive?: boolean
} = {}) {
  const virtual = createVirtualClock({ isBusy: () => false })
  const process = virtual.forProcess()
  /** The open timers, and whether each keeps the process alive. */
  const open = new Set<unknown>()
  const waiting: string[] = []
  const ends = new Map<string, ReturnType<typeof gate<void>>>()
  const looks: { at: number; limit: number }[] = []
  const errors: unknown[] = []
  const aborted: string[] = []
  const renewed: string[] = []
  let held: ReturnType<typeof gate<void>> | undefined
  const loop = createLeaseLoop<string>({
    concurrency: 1,
    pollMs: POLL_MS,
    ...options,
    async claim(limit) {
      looks.push({ at: virtual.now(), limit })
      await claims?.()
      await held?.opened
      return waiting.splice(0, limit)
    },
    async run(item, signal) {
      if (signal.aborted) aborted.push(`${item} before it began`)
      signal.addEventListener('abort', () => aborted.push(item))
      const end = gate()
      ends.set(item, end)
      await end.opened
    },
    async renew(item) {
      renewed.push(item)
      return true
    },
    leaseMs: 60 * SECOND,
    renewEveryMs: 20 * SECOND,
    clock: {
      ...process,
      setTimeout(callback, delayMs) {
        const handle = process.setTimeout(() => {
          open.delete(handle)
          callback()
        }, delayMs)
        open.add(handle)
        return handle
      },
      clearTimeout(handle) {
        open.delete(handle)
        process.clearTimeout(handle)
      },
    },
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
    clock: { ...virtual, timers: () => open.size },
    begunAt: virtual.now(),
    lookedAt: () => loop.lookedAt(),
    looks,
    errors,
    aborted,
    renewed,
    hold,
    due: (...items: string[]) => void waiting.push(...items),
    end(item: string, error?: Error) {
      if (error) ends.get(item)?.fail(error)
      else ends.get(item)?.open()
    },
  }
}
