import { createLine } from '../base/line.js'

/** Runs at most `concurrency` calls at once. The others wait in order, and reject when their signal aborts. */
export function createLimit(concurrency: number) {
  let free = concurrency
  const waiting = createLine<() => void>()

  return async function limited<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (free > 0) free--
    else await slot(signal)
    try {
      return await call()
    } finally {
      const enter = waiting.first()
      if (enter) enter()
      else free++
    }
  }

  /** Waits for a slot. An aborted call leaves the queue at once, so that no slot goes to it; `orAborted` would keep it. */
  function slot(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = waiting.add(enter)
      if (signal?.aborted) giveUp()
      else signal?.addEventListener('abort', giveUp)

      function enter() {
        leave()
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }

      function giveUp() {
        leave()
        reject(new DOMException('the caller no longer waits', 'AbortError'))
      }
    })
  }
}
