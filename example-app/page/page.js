/** The page: keeps what the server tells, shows the chosen business, and sends what is pressed. */
import { showAge, showAnswer } from './answer.js'
import { createHappenings } from './happenings.js'
import { clearReport, showReport } from './report.js'

const element = (id) => document.getElementById(id)
const happenings = createHappenings(element('happenings'), element('empty'))
let state = { businesses: [] }
let shownAnswer
let chosen = new URLSearchParams(location.hash.slice(1)).get('business')

const business = () => state.businesses.find(({ uid }) => uid === chosen) ?? state.businesses[0]

const source = new EventSource('happenings')
source.addEventListener('open', () => showLive(true))
source.addEventListener('error', () => showLive(false))
source.addEventListener('happening', ({ data }) => happenings.add(JSON.parse(data)))
source.addEventListener('state', ({ data }) => {
  state = JSON.parse(data)
  show()
})

function showLive(isLive) {
  element('live').dataset.live = isLive ? 'yes' : 'no'
  element('live').textContent = isLive ? 'Live' : 'Not connected'
}

function show() {
  chosen ??= state.businesses[0].uid
  // What the report answered speaks of the answer that was; it does not outlive it.
  const { decision } = business()
  const answer = `${chosen} ${decision?.entitled} ${decision?.known} ${state.isAppRunning}`
  if (answer !== shownAnswer) clearReport()
  shownAnswer = answer
  happenings.choose(chosen)
  showBusinesses()
  showAnswer(business(), state)
  for (const button of document.querySelectorAll('[data-action]')) {
    allow(button, business().whyNot[button.dataset.action])
  }
  for (const button of document.querySelectorAll('[data-switch]')) showSwitch(button)
  const down = state.isAppRunning ? null : 'The app is not running'
  allow(element('open-report'), null)
  allow(element('check'), down)
}

/** A button that cannot be pressed stays reachable, so that everybody can learn why. */
function allow(button, whyNot) {
  button.setAttribute('aria-disabled', String(Boolean(whyNot)))
  button.title = whyNot ?? ''
}

function showSwitch(button) {
  button.dataset.wordsOn ??= button.textContent
  const { switch: name, wordsOn, wordsOff } = button.dataset
  const isOn = name === 'isAppDown' ? !state.isAppRunning : state[name]
  button.textContent = isOn ? wordsOff : wordsOn
  button.dataset.isOn = String(isOn)
}

function showBusinesses() {
  const list = element('businesses')
  for (const { uid, name, decision } of state.businesses) {
    let input = list.querySelector(`input[value="${uid}"]`)
    if (!input) {
      const label = document.createElement('label')
      input = Object.assign(document.createElement('input'), { type: 'radio', name: 'business', value: uid })
      const dot = Object.assign(document.createElement('span'), { className: 'dot' })
      label.append(input, dot, name)
      list.append(label)
    }
    input.checked = uid === chosen
    input.parentElement.dataset.entitled = String(decision?.entitled ?? false)
    input.parentElement.title = decision?.entitled ? 'Let in' : 'Not let in'
  }
}

element('businesses').addEventListener('change', ({ target }) => {
  chosen = target.value
  history.replaceState(null, '', `#business=${chosen}`)
  note('')
  show()
})

document.addEventListener('click', async ({ target }) => {
  const button = target.closest('button')
  if (!button || button.getAttribute('aria-busy') === 'true') return
  if (button.getAttribute('aria-disabled') === 'true')
    return note(`${button.textContent}: not now. ${button.title}.`)
  note('')
  button.setAttribute('aria-busy', 'true')
  try {
    await press(button)
  } catch {
    note('That did not reach the demo. Is it still running?')
  } finally {
    button.removeAttribute('aria-busy')
  }
})

async function press(button) {
  const { action, on, off, isOn } = button.dataset
  const at = `businesses/${encodeURIComponent(chosen)}`
  if (button.id === 'open-report') showReport(await ask('GET', `${at}/report`))
  else if (button.id === 'check') await ask('POST', `${at}/check`)
  else if (action) await ask('POST', `${at}/actions/${action}`)
  else await ask('POST', `stage/${isOn === 'true' ? off : on}`)
}

async function ask(method, path) {
  const reply = await (await fetch(path, { method })).json()
  if (reply.why) note(reply.why)
  return reply
}

function note(text) {
  element('note').textContent = text
}

setInterval(() => business() && showAge(business()), 1_000)
