/**
 * Keeps the process alive while it is needed. The timers of this package do not, so a process that has nothing else
 * to do than to wait for work, or for one call of ours, would end silently with code 0 or 13.
 */
export function createHold() {
  let calls = 0
  let isTaken = false
  let timer: NodeJS.Timeout | undefined

  function update() {
    if (isTaken || calls > 0) {
      // Of Node itself, whatever the app's clock: this does not measure time.
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
    /** Until `release`. */
    take() {
      isTaken = true
      update()
    },
    release() {
      isTaken = false
      update()
    },
    /** Until `promise` settles; gives back the same promise. */
    during<T>(promise: Promise<T>): Promise<T> {
      if (++calls === 1) update()
      promise.then(end, end)
      return promise
    },
  }
}

const LONG_MS = 2 ** 30
