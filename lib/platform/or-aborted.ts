/**
 * What `promise` comes to, or a rejection as soon as `signal` aborts: also where the promise itself takes no notice.
 * The work behind it goes on for whoever else waits; what it comes to later is dropped.
 */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  let onAbort = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(new DOMException('given up', 'AbortError'))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort)
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
