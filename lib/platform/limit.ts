/** Runs at most `concurrency` calls at once. The others wait in order, and reject when their signal aborts. */
export function createLimit(concurrency: number) {
  let free = concurrency
  const waiting = new Set<() => void>()

  return async function limited<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (free > 0) free--
    else await turn(signal)
    try {
      return await call()
    } finally {
      const next = waiting.values().next().value
      if (next) {
        waiting.delete(next)
        next()
      } else free++
    }
  }

  function turn(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        waiting.delete(enter)
        reject(new DOMException('given up while waiting', 'AbortError'))
      }
      const enter = () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }
      if (signal?.aborted) return onAbort()
      signal?.addEventListener('abort', onAbort)
      waiting.add(enter)
    })
  }
}
