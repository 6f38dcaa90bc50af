/** The answer for the chosen business, and its reason. */
import { make, setText } from './make.js'

const element = (id) => document.getElementById(id)

const HEADLINES = {
  yes: 'Let in',
  no: 'Not let in',
  none: 'No purchase known',
  waiting: 'Not known yet',
  starting: 'The app is starting',
  stopped: 'The app is stopped',
}

/** `none`: no purchase is known, as for every business at the start. */
export function answerOf({ decision }, { app }) {
  if (app !== 'running') return app
  if (!decision) return 'waiting'
  if (decision.reason === 'unknown_business') return 'none'
  return decision.entitled ? 'yes' : decision.known ? 'no' : 'waiting'
}

/** Returns the answer as a line if it has changed, else an empty text. */
export function showAnswer(business, state) {
  const { uid, name, decision, isChecking } = business
  const answer = answerOf(business, state)
  const card = element('answer')
  const before = `${card.dataset.of} ${card.dataset.answer} ${element('reason').textContent}`
  card.dataset.of = uid
  card.dataset.answer = answer
  card.setAttribute('aria-busy', String(isChecking))

  setText('headline', HEADLINES[answer])
  setText('explanation', explanationOf(answer, business, state))
  const reason = decision?.reason ?? '–'
  setText('reason', reason)
  setText('truth', truthOf(business, state))
  setText('known', knownOf(business))
  element('known').dataset.behind = String(isBehind(business))
  showAge(business)
  showSubscriptions(decision?.subscriptions ?? [], state)
  const isNews = before.startsWith(uid) && before !== `${uid} ${answer} ${reason}`
  return isNews
    ? `${name}: ${HEADLINES[answer]}${reason === '–' ? '' : ` (${reason.replaceAll('_', ' ')})`}.`
    : ''
}

/** The state on the platform. */
export function truthOf({ truth }, { isCutOff, isSlow }) {
  return `${truth.state === 'none' ? 'nothing bought' : truth.state}${isCutOff ? ', cut off' : isSlow ? ', slow' : ''}`
}

/** The state that the package knows. It says so itself if the platform is ahead. */
export function knownOf(business) {
  if (!business.decision) return 'not asked yet'
  const known = stateKnown(business)
  if (!isBehind(business)) return known
  return BEFORE_THE_FIRST_READ[known] ?? `${known}, behind`
}

const BEFORE_THE_FIRST_READ = { 'nothing known': 'nothing known yet', 'not read yet': 'not read yet' }

/** That of the subscription which lets the business in, else of the newest one. */
export function stateKnown({ decision, truth }) {
  const subscriptions = decision?.subscriptions ?? []
  const decisive =
    subscriptions.find(({ entitled }) => entitled) ??
    subscriptions.find(({ subscription_uid }) => subscription_uid === truth.subscription_uid) ??
    subscriptions.at(-1)
  return decisive ? stateOf(decisive) : 'nothing known'
}

/** A business that has uninstalled shows the package nothing any more. */
function isBehind(business) {
  const { truth, decision } = business
  return (
    decision !== null &&
    truth.state !== 'none' &&
    decision.reason !== 'revoked' &&
    stateKnown(business) !== truth.state
  )
}

/** Shows the age, which changes by itself. */
export function showAge({ decision }) {
  const words = decision?.asOf ? `${age(decision.asOf)} ago${decision.stale ? ', too long' : ''}` : 'not yet'
  setText('age', decision ? words : '–')
}

function explanationOf(answer, { words }, { waitingDeliveries }) {
  if (answer === 'none') return 'The app knows of no purchase by this business, so the report is closed.'
  if (answer === 'starting') return 'It opens its database, and registers its webhooks.'
  if (answer !== 'stopped') return words ?? 'The app has not answered yet.'
  const waiting =
    waitingDeliveries === 0
      ? 'No webhook waits for it now.'
      : waitingDeliveries === 1
        ? '1 webhook waits.'
        : `${waitingDeliveries} webhooks wait.`
  return `Webhooks get no reply, and this simulated platform sends them again every second until the app runs. Acknowledged webhooks are on disk. ${waiting}`
}

function showSubscriptions(subscriptions, { app }) {
  element('subscriptions-title').hidden = subscriptions.length === 0
  const items = subscriptions.map((subscription) => {
    const { subscription_uid, pending, failure, entitled } = subscription
    const state = make('span', 'state', stateOf(subscription))
    state.dataset.entitled = String(entitled)
    const item = make('li', '', make('code', '', subscription_uid), state)
    const trouble = failure
      ? `last read failed: ${failure}`
      : pending && app === 'running'
        ? 'a read is under way'
        : ''
    if (trouble) item.append(make('span', 'trouble', trouble))
    return item
  })
  element('subscriptions').replaceChildren(...items)
}

function stateOf({ purchase_state, asOf }) {
  return purchase_state ?? (asOf === null ? 'not read yet' : 'no longer shown')
}

function age(iso) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(iso)) / 1_000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}
