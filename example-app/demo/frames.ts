import type { Happening, Timeline } from './timeline.js'

/** What the page draws at once: an event with the state after it, or a state that changed without an event. */
export interface Frame<State> {
  /** Counts from 1. */
  number: number
  happening?: Happening
  state: State
}

/** The least time between two frames without an event. */
const QUIET_EVERY_MS = 40
const MOST_KEPT = 500

/**
 * The frames of the demo, in order. The page draws nothing else, so that no part of it is ahead of another. `prepare` may
 * delay the frame of an event until the state that it announces is known.
 */
export function createFrames<State>(options: {
  timeline: Timeline
  state(): State
  prepare(happening: Happening): Promise<void> | undefined
  onFrame(frame: Frame<State>): void
}) {
  const { timeline, state, prepare, onFrame } = options
  const past: Happening[] = []
  let number = 0
  let timer: NodeJS.Timeout | undefined

  function push(happening?: Happening) {
    number += 1
    if (happening) past.push(happening)
    if (past.length > MOST_KEPT) past.shift()
    onFrame({ number, ...(happening ? { happening } : {}), state: state() })
  }

  const unlisten = timeline.listen((happening) => {
    const ready = prepare(happening)
    if (ready) return void ready.then(() => push(happening))
    // An action is announced before it is performed. Its frame has the state after it.
    queueMicrotask(() => push(happening))
  })

  return {
    /** The state may have changed. */
    changed() {
      timer ??= setTimeout(() => {
        timer = undefined
        push()
      }, QUIET_EVERY_MS)
    },
    /** What a page needs that begins now. */
    begin: () => ({ number, past, state: state() }),
    /** The number of the newest frame. */
    last: () => number,
    close() {
      unlisten()
      clearTimeout(timer)
    },
  }
}
