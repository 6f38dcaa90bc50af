/** The way of a webhook: platform → this package → your app. A part is lit while something passes through it. */
import { answerOf, knownOf, stateKnown, truthOf } from './answer.js'
import { setText } from './make.js'

const LEFT_LIT_MS = 1_500

/** The parts that each kind of event passes through, and the text below the strip. */
const PARTS = {
  platform: { parts: ['platform'], words: ({ text }) => `${text}.` },
  delivery: {
    parts: ['webhook', 'package'],
    words: ({ text, tone }) =>
      tone === 'bad' ? `A webhook fails: ${text}.` : `A webhook, stored on disk: ${text}.`,
  },
  token: { parts: ['read'], words: ({ text }) => `${text}, for the read of the subscription.` },
  read: {
    parts: ['read', 'platform'],
    words: ({ text, tone }) => (tone === 'bad' ? `${text}.` : `${text}: the record decides.`),
  },
  change: { parts: ['package', 'answer', 'app'], words: wordsOfChange },
  event: { parts: ['answer', 'app'], words: ({ text }) => `${text}.` },
  decision: {
    parts: ['package', 'answer', 'app'],
    words: ({ text }) => `The answer: ${text.replace(/: (.*)/, ' ($1)')}.`,
  },
  visit: { parts: ['app'], words: ({ text }) => `${text}.` },
  demo: { parts: ['package', 'app'], words: ({ text }) => `${text}.` },
}

const STATIONS = {
  yes: 'Report open',
  no: 'Report closed',
  none: 'Report closed',
  waiting: 'Not known yet',
  starting: 'Starting',
  stopped: 'Stopped',
}

const isStill = matchMedia('(prefers-reduced-motion: reduce)')

export function createStrip(strip) {
  const parts = new Map([...strip.querySelectorAll('[data-part]')].map((each) => [each.dataset.part, each]))
  let timer

  function dim() {
    for (const each of parts.values()) if (each.dataset.lit === 'now') each.dataset.lit = 'passed'
  }

  function putOut() {
    for (const each of parts.values()) delete each.dataset.lit
  }

  return {
    /** Shows the state, and the event that led to it. */
    show(business, state) {
      strip.dataset.app = state.app === 'running' ? 'running' : 'stopped'
      strip.dataset.platform = state.isCutOff ? 'cut' : state.isSlow ? 'slow' : 'fine'
      setText('strip-truth', truthOf(business, state))
      setText('strip-known', state.app === 'running' ? knownOf(business) : resting(state))
      setText('strip-answer', STATIONS[answerOf(business, state)])
    },
    /** The event in words; without one, nothing has happened yet to the business. */
    tell(happening, business) {
      const words = happening ? PARTS[happening.kind].words(happening, business) : NOTHING
      setText('strip-whose', words.startsWith(business.name) || !happening ? '' : business.name)
      setText('strip-words', words)
    },
    light({ kind, tone, id, cause }) {
      clearTimeout(timer)
      // An action of a person starts a new webhook. The parts of the previous one stay faintly lit until then.
      if (id === cause) putOut()
      dim()
      for (const name of PARTS[kind].parts) Object.assign(parts.get(name).dataset, { lit: 'now', tone })
    },
    /** With reduced motion, the parts stay lit until the next webhook begins. */
    rest() {
      clearTimeout(timer)
      if (!isStill.matches) timer = setTimeout(dim, LEFT_LIT_MS)
    },
    putOut,
  }
}

const NOTHING = 'Nothing is on its way. Play a story, and watch it here.'

/** A handler may be called when a later change is known already. */
function wordsOfChange({ text }, business) {
  const isOld = business.decision && !text.endsWith(`→ ${stateKnown(business)}`)
  return `Your onPurchaseChange is called${isOld ? ' for an earlier change' : ''}: ${text}.`
}

function resting({ app, waitingDeliveries }) {
  if (app === 'starting') return 'Starting, opens its database'
  return waitingDeliveries > 0
    ? `Stopped, ${waitingDeliveries} ${waitingDeliveries === 1 ? 'webhook waits' : 'webhooks wait'}`
    : 'Stopped, its database is on disk'
}
