import { createContext } from 'preact'
import { useState } from 'preact/hooks'
import type { HealthReply } from '../../protocol/shapes.js'
import { read } from '../calls.js'
import { usePolling } from '../hooks.js'

const EVERY_MS = 10_000

export interface Watched {
  data: HealthReply | undefined
  error: string | undefined
}

/** The health as last read, for all chapters. */
export const HealthContext = createContext<Watched>({ data: undefined, error: undefined })

/** Reads the health again and again. */
export function useWatchedHealth(): Watched {
  const [watched, setWatched] = useState<Watched>({ data: undefined, error: undefined })
  usePolling(
    () =>
      read('health').then(
        (data) => setWatched({ data, error: undefined }),
        ({ message }) => setWatched(({ data }) => ({ data, error: message })),
      ),
    EVERY_MS,
    true,
  )
  return watched
}
