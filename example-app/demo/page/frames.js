/**
 * The frames from the demo, drawn in order: each an event and the state after it. Real events take milliseconds, so each
 * frame whose event is to be seen stays for a while. All parts of the page are drawn from one frame.
 */

const SEEN_MS = 750
/** Limit of waiting events. The oldest ones are drawn, but not shown for long. */
const MOST_WAITING = 12

const isStill = matchMedia('(prefers-reduced-motion: reduce)')

/** `isSeen(frame)`: its event concerns what the page shows. `rest()` is called when no frame is left. */
export function createFrames({ draw, isSeen, rest }) {
  let waiting = []
  let drawn = 0
  let timer
  let awaited = []
  /** Frames up to this number are drawn at once. */
  let hurriedTo = 0

  function paint(frame) {
    drawn = frame.number
    draw(frame)
    for (const { number, resolve } of awaited) if (number <= drawn) resolve()
    awaited = awaited.filter(({ number }) => number > drawn)
  }

  function next() {
    timer = undefined
    while (waiting.length > 0) {
      const frame = waiting.shift()
      paint(frame)
      const isHurried = isStill.matches || frame.number <= hurriedTo
      if (isSeen(frame) && !isHurried && waiting.filter(isSeen).length < MOST_WAITING) {
        timer = setTimeout(next, SEEN_MS)
        return
      }
    }
    rest()
  }

  return {
    /** The first frame of a connection. It has no event. */
    begin(frame) {
      clearTimeout(timer)
      waiting = [frame]
      hurriedTo = 0
      for (const { resolve } of awaited.splice(0)) resolve()
      next()
    },
    add(frame) {
      // A state without an event is replaced by the next one.
      if (!frame.happening && waiting.length > 0 && !waiting.at(-1).happening) waiting.pop()
      waiting.push(frame)
      if (timer === undefined) next()
    },
    /** Draws all that wait at once, and what comes later up to this number. */
    catchUp(number = 0) {
      hurriedTo = number
      clearTimeout(timer)
      timer = undefined
      for (const frame of waiting.splice(0)) paint(frame)
      rest()
    },
    /** Resolves when the frame with this number is drawn. */
    drawn: (number) =>
      new Promise((resolve) => (drawn >= number ? resolve() : awaited.push({ number, resolve }))),
  }
}
