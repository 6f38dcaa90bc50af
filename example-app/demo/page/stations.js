/** The texts of the stations of the strip: the state of the platform, of the package and of the app. */
import { answerOf, stateKnown } from './answer.js'
import { setText } from './make.js'

const strip = document.getElementById('strip')
const ANSWERS = { yes: 'Report open', no: 'Report closed', none: 'Report closed', waiting: 'Not known yet' }

/** The kinds of events that change a station while the strip plays. */
const TRUTH = ['platform']
const KNOWN = ['read', 'change']
const ANSWER = ['decision', 'demo']

export function createStations() {
  return {
    /** Shows the stations that an event of this kind changes; without a kind, all of them. */
    show(business, state, kind) {
      const { name, truth, decision } = business
      const isAny = (kinds) => kind === undefined || kinds.includes(kind)
      setText('strip-whose', document.getElementById('strip-words').textContent.startsWith(name) ? '' : name)
      strip.dataset.app = state.isAppRunning ? 'running' : 'stopped'
      strip.dataset.platform = state.isCutOff ? 'cut' : state.isSlow ? 'slow' : 'fine'
      if (isAny(TRUTH)) setText('strip-truth', truthOf(truth, state))
      if (isAny(KNOWN)) setText('strip-known', knownOf(decision, state))
      if (!isAny(ANSWER)) return
      const answer = answerOf(business, state)
      setText('strip-answer', answer === 'stopped' ? 'Stopped' : ANSWERS[answer])
      strip.dataset.answer = answer
    },
  }
}

function truthOf({ state }, { isCutOff, isSlow }) {
  const words = state === 'none' ? 'nothing bought' : state
  return `${words}${isCutOff ? ', cut off' : isSlow ? ', slow' : ''}`
}

function knownOf(decision, { isAppRunning, waitingDeliveries }) {
  if (isAppRunning) return stateKnown(decision)
  return waitingDeliveries > 0
    ? `Stopped, ${waitingDeliveries} ${waitingDeliveries === 1 ? 'webhook waits' : 'webhooks wait'}`
    : 'Stopped, its database is on disk'
}
