/**
 * Keeps the process alive while it is needed. The timers of this package do not keep it alive. Without this, a process
 * that only waits for work, or for one call of this package, would end silently with code 0 or 13.
 */
export function createHold() {
  let calls = 0
  let isTaken = false
  let timer: NodeJS.Timeout | undefined

  function update() {
    if (isTaken || calls > 0) {
      // A timer of Node, not of the app's clock: it does not measure time.
      timer ??= setInterval(() => {}, LONG_MS)
    } else {
      clearInterval(timer)
      timer = undefined
    }
  }

  function end() {
    if (--calls === 0) update()
  }

  return {
    /** Keeps the process alive until `release`. */
    take() {
      isTaken = true
      update()
    },
    release() {
      isTaken = false
      update()
    },
    /** Keeps the process alive until `promise` settles; returns the same promise. */
    during<T>(promise: Promise<T>): Promise<T> {
      if (++calls === 1) update()
      promise.then(end, end)
      return promise
    },
  }
}

const LONG_MS = 2 ** 30
