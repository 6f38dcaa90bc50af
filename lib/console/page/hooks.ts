import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

export interface Loaded<T> {
  data: T | undefined
  error: string | undefined
  isLoading: boolean
  reload(): void
  /** Sets the result of an action, instead of loading again. */
  set(data: T): void
}

/** The result of `load`. It loads again when `deps` change, and drops results for earlier `deps`. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: string; isLoading: boolean }>({ isLoading: true })
  const [reloads, setReloads] = useState(0)
  useEffect(() => {
    const stop = new AbortController()
    setState(({ data }) => ({ ...(data === undefined ? {} : { data }), isLoading: true }))
    load(stop.signal).then(
      (data) => stop.signal.aborted || setState({ data, isLoading: false }),
      (error) => stop.signal.aborted || setState({ error: String(error.message ?? error), isLoading: false }),
    )
    return () => stop.abort()
  }, [...deps, reloads])
  const { data, error, isLoading } = state
  return {
    data,
    error,
    isLoading,
    reload: useCallback(() => setReloads((before) => before + 1), []),
    set: useCallback((fresh: T) => setState({ data: fresh, isLoading: false }), []),
  }
}

/** Runs an action, and shows whether it is under way and its error. */
export function useAct() {
  const [state, setState] = useState<{ isBusy: boolean; error?: string }>({ isBusy: false })
  const run = useCallback(async function run<T>(work: () => Promise<T>): Promise<T | undefined> {
    setState({ isBusy: true })
    try {
      const result = await work()
      setState({ isBusy: false })
      return result
    } catch (error) {
      setState({ isBusy: false, error: String((error as Error).message ?? error) })
      return undefined
    }
  }, [])
  return { ...state, run }
}

/** Calls `work` every `everyMs`, one call at a time, while `isOn` and the page is visible. */
export function usePolling(work: () => Promise<unknown>, everyMs: number, isOn: boolean) {
  const latest = useRef(work)
  latest.current = work
  useEffect(() => {
    if (!isOn) return
    let timer: ReturnType<typeof setTimeout> | undefined
    let isStopped = false
    async function poll() {
      if (!document.hidden) await latest.current()
      if (!isStopped) timer = setTimeout(poll, everyMs)
    }
    poll()
    return () => {
      isStopped = true
      clearTimeout(timer)
    }
  }, [everyMs, isOn])
}

/** The place after `#` in the address, in parts: `#/business/b1` is `['business', 'b1']`. */
export function usePlace(): string[] {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const changed = () => setHash(location.hash)
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return hash
    .replace(/^#\/?/, '')
    .split('/')
    .map(decode)
    .filter((part) => part !== '')
}

export function goTo(...parts: string[]) {
  location.hash = placeOf(...parts)
}

export function placeOf(...parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join('/')}`
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
