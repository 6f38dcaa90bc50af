/** The way of a webhook: platform → this package → your app. A part is lit while something passes through it. */
import { setText } from './make.js'

/** Each part stays lit for this time, because the real events take only milliseconds. */
const LIT_MS = 750
const LEFT_LIT_MS = 1_500
/** Limit of waiting events. The oldest ones are skipped. */
const MOST_WAITING = 12

/** The parts that each kind of event passes through, and the text below the strip. */
const PARTS = {
  platform: { parts: ['platform'], words: ({ text }) => `${text}.` },
  delivery: {
    parts: ['webhook', 'package'],
    words: ({ text, tone }) =>
      tone === 'bad' ? `A webhook fails: ${text}.` : `A webhook, stored on disk: ${text}.`,
  },
  token: { parts: ['read'], words: ({ text }) => `${text}, for the read of the subscription.` },
  read: { parts: ['read', 'platform'], words: ({ text }) => `${text}: this is the truth.` },
  change: {
    parts: ['package', 'answer', 'app'],
    words: ({ text }) => `Your onPurchaseChange is called: ${text}.`,
  },
  event: { parts: ['answer', 'app'], words: ({ text }) => `${text}.` },
  decision: {
    parts: ['answer', 'app'],
    words: ({ text }) => `The answer: ${text.replace(/: (.*)/, ' ($1)')}.`,
  },
  visit: { parts: ['app'], words: ({ text }) => `${text}.` },
  demo: { parts: ['package', 'app'], words: ({ text }) => `${text}.` },
}

const isStill = matchMedia('(prefers-reduced-motion: reduce)')

/** Calls `onPass(kind)` when an event becomes visible, and `onPass()` when no event is left. */
export function createStrip(strip, onPass) {
  const parts = new Map([...strip.querySelectorAll('[data-part]')].map((each) => [each.dataset.part, each]))
  let waiting = []
  const resting = []
  let isPlaying = false
  let timer

  function light(happening) {
    const { parts: passed, words } = PARTS[happening.kind]
    // An action of a person starts a new webhook. The parts of the previous one stay faintly lit until then.
    if (happening.id === happening.cause) putOut()
    dim()
    for (const name of passed) {
      parts.get(name).dataset.lit = 'now'
      parts.get(name).dataset.tone = happening.tone
    }
    setText('strip-words', words(happening))
    onPass(happening.kind)
  }

  function next() {
    const happening = waiting.shift()
    isPlaying = happening !== undefined
    if (happening) {
      light(happening)
      timer = setTimeout(next, LIT_MS)
      return
    }
    timer = setTimeout(dim, LEFT_LIT_MS)
    rested()
  }

  function rested() {
    onPass()
    for (const resolve of resting.splice(0)) resolve()
  }

  function dim() {
    for (const each of parts.values()) if (each.dataset.lit === 'now') each.dataset.lit = 'passed'
  }

  function putOut() {
    for (const each of parts.values()) delete each.dataset.lit
  }

  return {
    add(happening) {
      // With reduced motion, the parts are lit at once and stay lit until the next webhook begins.
      if (isStill.matches) {
        light(happening)
        return rested()
      }
      waiting = [...waiting, happening].slice(-MOST_WAITING)
      if (isPlaying) return
      clearTimeout(timer)
      next()
    },
    /** Drops the waiting events. */
    clear() {
      clearTimeout(timer)
      waiting = []
      isPlaying = false
      putOut()
      rested()
    },
    isPlaying: () => isPlaying,
    /** Resolves when no event is left. */
    rest: () => new Promise((resolve) => (isPlaying ? resting.push(resolve) : resolve())),
  }
}
