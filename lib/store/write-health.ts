import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError, messageOf } from '../errors.js'

/** A write that takes longer is a problem: by then its sender has received 503. */
const SLOW_MS = 5 * SECOND
/** A failure within this time counts more than a successful probe, which is smaller than a delivery may be. */
const RECENT_MS = 2 * SECOND
/** A probe has more statements than a delivery, so the shortest time limits of deliveries say nothing about it. */
const QUICK_MS = SECOND

/**
 * Remembers why the last write or sync failed, or that a write took too long, until a probe was quick. Nothing else proves
 * that writing works again: a delivery may write into fewer tables than the next one. A probe writes what a delivery
 * writes, at most once a second. `problem()` starts one, and so does each successful write until one has succeeded.
 */
export function createWriteHealth(options: {
  probe(): Promise<unknown>
  /** Why writing does not work now, as the engine found by itself: for example a checkpoint whose sync failed. */
  fault?(): unknown
  isDataError(error: unknown): boolean
  clock: Pick<Clock, 'monotonic'>
}) {
  const { probe, fault, isDataError, clock } = options
  let failure: { message: string; at: number } | undefined
  /** How long the last successful probe since the failure took; undefined if there was none. */
  let probeMs: number | undefined
  let probedAt = Number.NEGATIVE_INFINITY
  let isProbing = false
  const begun = new Set<{ at: number }>()

  function failed(error: unknown) {
    const isAboutData =
      error instanceof MarketplaceError
        ? error.code === 'argument_invalid' || isDataError(error.cause)
        : isDataError(error)
    if (isAboutData) return
    failure = { message: messageOf(error), at: clock.monotonic() }
    probeMs = undefined
  }

  async function probeSoon() {
    const beganAt = clock.monotonic()
    if (!failure || isProbing || beganAt - probedAt < SECOND) return
    probedAt = beganAt
    isProbing = true
    try {
      await probe()
      const now = clock.monotonic()
      if (failure && now - failure.at >= RECENT_MS) probeMs = now - beganAt
    } catch (error) {
      failed(error)
    } finally {
      isProbing = false
    }
  }

  return {
    async watch<T>(write: () => Promise<T>): Promise<T> {
      const beginning = { at: clock.monotonic() }
      begun.add(beginning)
      try {
        const result = await write()
        if (probeMs === undefined) void probeSoon()
        return result
      } catch (error) {
        failed(error)
        throw error
      } finally {
        begun.delete(beginning)
      }
    },

    /** `inTimeMs`: a probe that took longer proves nothing, because senders give up by then. */
    problem(inTimeMs = 3 * SECOND): string | null {
      if (probeMs !== undefined && probeMs < Math.max(inTimeMs, QUICK_MS)) failure = undefined
      const found = fault?.()
      if (found !== undefined) failed(found)
      const [oldest] = begun
      const waitingMs = oldest ? clock.monotonic() - oldest.at : 0
      if (waitingMs > SLOW_MS)
        failed(new Error(`Cannot use the store: a write has not finished for ${seconds(waitingMs)}`))
      void probeSoon()
      if (!failure) return null
      return probeMs === undefined
        ? failure.message
        : `Cannot use the store in time: a write took ${seconds(probeMs)}`
    },
  }
}

export type WriteHealth = ReturnType<typeof createWriteHealth>

const seconds = (ms: number) => `${Math.round(ms / SECOND)} s`
