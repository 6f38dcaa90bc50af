import { createLine, type Line } from '../base/line.js'
import { tooLarge, unreadable } from './envelopes.js'

const NOTHING = Buffer.alloc(0)

/** The most bytes of memory for bodies of at most `limitBytes`. */
export const mostBytesFor = (limitBytes: number): number => Math.max(64 * 1024 * 1024, 4 * limitBytes)

/**
 * Returns `openBody(stop)`, which collects the chunks of one body of at most `limitBytes`. The memory of all open bodies
 * together stays within `mostBytes`: to make room one of the largest is refused, the first that grew so large. So neither slow senders nor large bodies keep out an ordinary delivery, which is small.
 *
 * `stop` is called with the reason, `body_too_large` or `body_timeout`, once its memory is free.
 */
export function createOpenBodies(limitBytes: number, mostBytes = mostBytesFor(limitBytes)) {
  /** The open bodies by the power of two that their memory exceeds. */
  const lines: Line<() => void>[] = []
  let heldBytes = 0

  function refuseOneOfTheLargest(): void {
    lines.findLast(({ size }) => size > 0)?.first()?.()
  }

  function lineOf(bytes: number): Line<() => void> {
    const power = 32 - Math.clz32(bytes)
    while (lines.length <= power) lines.push(createLine())
    return lines[power] as Line<() => void>
  }

  return function openBody(stop: (reason: unknown) => void) {
    let held: Buffer = NOTHING
    let size = 0
    let isOpen = true
    let leave = () => {}

    function add(chunk: Buffer): void {
      const needed = size + chunk.length
      if (needed > limitBytes) refuse(tooLarge(limitBytes))
      else if (needed > held.length) grow(needed, chunk)
      if (!isOpen) return
      if (held !== chunk) held.set(chunk, size)
      size = needed
    }

    /**
     * Chunks are copied into one buffer, because 65,000 chunks of one byte take about 12 MB. A first chunk is held as it
     * is, unless it is a small part of a larger buffer, as over HTTP/2.
     */
    function grow(needed: number, chunk: Buffer): void {
      const capacity = Math.max(needed, Math.min(2 * held.length, limitBytes))
      const more = capacity - held.length
      leave()
      leave = lineOf(capacity).add(makeRoom)
      // It may be this body.
      while (isOpen && heldBytes + more > mostBytes) refuseOneOfTheLargest()
      if (!isOpen) return
      const isKept = held === NOTHING && chunk.buffer.byteLength <= 2 * chunk.length
      const grown = isKept ? chunk : Buffer.allocUnsafeSlow(capacity)
      if (!isKept) grown.set(held)
      held = grown
      heldBytes += more
    }

    function makeRoom(): void {
      refuse(
        unreadable(
          'body_timeout',
          `the bodies under way together exceeded ${mostBytes} bytes, and it was one of the largest`,
        ),
      )
    }

    function refuse(reason: unknown): void {
      close()
      stop(reason)
    }

    /** Frees the memory; returns the bytes that have arrived. */
    function close(): Buffer {
      const bytes = held.length === size ? held : held.subarray(0, size)
      isOpen = false
      leave()
      heldBytes -= held.length
      held = NOTHING
      return bytes
    }

    return { add, close }
  }
}
