import { type Clock, SECOND } from '../clock.js'
import { MarketplaceError, messageOf } from '../errors.js'

/** A write that takes longer is a problem while it lasts: by then its sender has received 503. */
const SLOW_MS = 5 * SECOND
/** A failure within this time counts more than a successful probe, which is smaller than a delivery may be. */
const RECENT_MS = 2 * SECOND

/**
 * Remembers why the last write or sync failed, until a write shows that writing works again: an accepted delivery, or a
 * probe. A probe writes what a delivery writes, at most once a second. `problem()` starts one, and so does any other
 * successful write, since that may have written nothing.
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
  let probedAt = Number.NEGATIVE_INFINITY
  const begun = new Set<{ at: number }>()

  function failed(error: unknown) {
    const isAboutData =
      error instanceof MarketplaceError
        ? error.code === 'argument_invalid' || isDataError(error.cause)
        : isDataError(error)
    if (!isAboutData) failure = { message: messageOf(error), at: clock.monotonic() }
  }

  function probeSoon() {
    const now = clock.monotonic()
    if (!failure || now - probedAt < SECOND) return
    probedAt = now
    probe().then(
      () => {
        if (failure && clock.monotonic() - failure.at >= RECENT_MS) failure = undefined
      },
      (error) => failed(error),
    )
  }

  return {
    /** Watches one write. `proves`: its success shows that new data reaches the disk. */
    async watch<T>(work: () => Promise<T>, proves: boolean): Promise<T> {
      const beginning = { at: clock.monotonic() }
      begun.add(beginning)
      try {
        const result = await work()
        if (proves) failure = undefined
        else probeSoon()
        return result
      } catch (error) {
        failed(error)
        throw error
      } finally {
        begun.delete(beginning)
      }
    },

    problem(): string | null {
      const found = fault?.()
      if (found !== undefined) failed(found)
      probeSoon()
      const [oldest] = begun
      const waitingMs = oldest ? clock.monotonic() - oldest.at : 0
      if (failure) return failure.message
      return waitingMs > SLOW_MS
        ? `Cannot use the store: a write has not finished for ${Math.round(waitingMs / SECOND)} s`
        : null
    },
  }
}

export type WriteHealth = ReturnType<typeof createWriteHealth>
