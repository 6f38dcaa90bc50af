/**
 * Calls `ask` until it returns neither false nor undefined; fails with `what` at the deadline. The usual one is no promise: it
 * is met by a machine that has several times as much to do.
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  withinMs = 30_000,
): Promise<Exclude<T, undefined | null | false>> {
  const begun = Date.now()
  for (;;) {
    const answer = await ask()
    if (answer !== undefined && answer !== null && answer !== false) {
      return answer as Exclude<T, undefined | null | false>
    }
    const waitedMs = Date.now() - begun
    if (waitedMs > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`)
    // Many questions read a database or ask a process, which then work for nothing else.
    await new Promise((resolve) => setTimeout(resolve, waitedMs < 100 ? 5 : 25))
  }
}

/** A promise that a test resolves or rejects, to hold work back. */
export function gate<T = void>() {
  let open: (value: T) => void = () => {}
  let fail: (reason: unknown) => void = () => {}
  const opened = new Promise<T>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { opened, open, fail }
}

/** Lets the loops look for work this many times. They poll every 50 ms, and may take a fifth longer. */
export async function looks(times: number) {
  const end = Date.now() + times * 60
  await until('the loops have looked', () => Date.now() > end)
}
