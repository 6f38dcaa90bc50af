import { clockTime } from './clock-time.js'

/** Whether the chosen business is let in, and why. */
const element = (id) => document.getElementById(id)

export function showAnswer(business, { isAppRunning }) {
  const { name, decision, truth, isChecking, askedAt } = business
  const answer =
    !isAppRunning || !decision ? 'waiting' : decision.entitled ? 'yes' : decision.known ? 'no' : 'waiting'
  const card = element('answer')
  card.dataset.answer = answer
  element('announcement').dataset.answer = answer
  card.setAttribute('aria-busy', String(isChecking))

  const headline = !isAppRunning
    ? 'The app is not running'
    : { yes: 'Let in', no: 'Not let in', waiting: decision ? 'Cannot say yet' : 'One moment' }[answer]
  const explanation = !isAppRunning
    ? 'Nobody can ask it. What the platform delivers now is refused, and has to be sent again.'
    : (decision?.explanation ?? 'The app has not answered yet.')
  setText('headline', headline)
  setText('explanation', explanation)
  setText('said', decision && isAppRunning ? `The app said so at ${clockTime(askedAt)}` : '')
  setText('reason', decision?.reason ?? '–')
  showStates(decision, truth)
  showAge(business)
  showSubscriptions(decision?.subscriptions ?? [])
  // Told once for each answer, not whenever the age in its words moves on.
  setText(
    'announcement',
    `${name}: ${headline}${isAppRunning && decision ? ` (${decision.reason.replaceAll('_', ' ')})` : ''}`,
  )
}

/** On a phone the announcement is to be seen too, while the answer itself is out of sight. */
new IntersectionObserver(([{ isIntersecting }]) => {
  element('announcement').classList.toggle('unseen', isIntersecting)
}).observe(element('headline'))

/** Grows older by itself. */
export function showAge({ decision }) {
  const words = decision?.asOf ? `${age(decision.asOf)} ago${decision.stale ? ', too long' : ''}` : 'never'
  setText('age', decision ? words : '–')
}

function showStates(decision, truth) {
  const known =
    decision?.subscriptions.at(-1)?.purchase_state ??
    (decision?.subscriptions.length ? 'not read' : 'nothing')
  setText('truth', truth.state === 'none' ? 'nothing bought' : truth.state)
  setText('known', known === 'nothing' ? 'nothing heard' : known)
  const isSame = truth.state === known || (truth.state === 'none' && known === 'nothing')
  element('known').dataset.same = String(isSame || decision?.reason === 'revoked')
}

function showSubscriptions(subscriptions) {
  element('subscriptions-title').hidden = subscriptions.length === 0
  const items = subscriptions.map(({ subscription_uid, purchase_state, pending, failure, entitled }) => {
    const item = document.createElement('li')
    const uid = Object.assign(document.createElement('code'), {
      textContent: subscription_uid,
      title: subscription_uid,
    })
    const state = Object.assign(document.createElement('span'), {
      className: 'state',
      textContent: purchase_state ?? 'not shown',
    })
    state.dataset.entitled = String(entitled)
    item.append(uid, state)
    const trouble = failure ? `last read failed: ${failure}` : pending ? 'a read is under way' : ''
    if (trouble)
      item.append(
        Object.assign(document.createElement('span'), { className: 'trouble', textContent: trouble }),
      )
    return item
  })
  element('subscriptions').replaceChildren(...items)
}

function age(iso) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(iso)) / 1_000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}

/** Untouched when equal, so that live regions speak only of news. */
function setText(id, text) {
  if (element(id).textContent !== text) element(id).textContent = text
}
