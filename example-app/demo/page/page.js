/** The page: holds the state from the server, shows the chosen business, and sends the actions of the buttons. */
import { showAge, showAnswer } from './answer.js'
import { clockTime } from './clock-time.js'
import { addCode } from './code.js'
import { createLog } from './log.js'
import { make, setText } from './make.js'
import { clearReport, showReport } from './report.js'
import { createStations } from './stations.js'
import { createStories } from './stories.js'
import { createStrip } from './strip.js'

const element = (id) => document.getElementById(id)
const NOT_CONNECTED = 'The demo cannot be reached'

const log = createLog(element('causes'))
const stations = createStations()
const strip = createStrip(element('strip'), (kind) => business() && stations.show(business(), state, kind))
let state = { businesses: [] }
let isLive = false
let seenAt = Date.now()
let shownAnswer
let chosen = new URLSearchParams(location.hash.slice(1)).get('business')

/** The visible places that show the answer. */
const inView = new Set()
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) inView[isIntersecting ? 'add' : 'delete'](target)
})
observer.observe(element('headline'))
observer.observe(element('strip-answer'))

const business = () => state.businesses.find(({ uid }) => uid === chosen) ?? state.businesses[0]

const guide = await (await fetch('guide')).json()
for (const row of document.querySelectorAll('.with-code')) addCode(row, guide.code, codeOf)
createStories({ ...guide, playStep, choose, announce: (text) => announce(text, true) })

const source = new EventSource('happenings')
source.addEventListener('error', () => showLive(false))
source.addEventListener('past', ({ data }) => log.past(JSON.parse(data)))
source.addEventListener('happening', ({ data }) => {
  const happening = JSON.parse(data)
  log.add(happening)
  if (happening.business_uid === undefined || happening.business_uid === chosen) strip.add(happening)
})
source.addEventListener('state', ({ data }) => {
  state = JSON.parse(data)
  seenAt = Date.now()
  showLive(true)
  show()
})

/** Without a connection to the demo the page is grey, and a message warns that it may be out of date. */
function showLive(now) {
  const isNews = isLive !== now
  isLive = now
  document.body.dataset.live = now ? 'yes' : 'no'
  element('live').dataset.live = now ? 'yes' : 'no'
  setText('live', now ? 'Connected' : 'Not connected')
  element('lost').hidden = now
  if (!isNews) return
  setText('lost-at', clockTime(seenAt))
  announce(now ? '' : `${NOT_CONNECTED}.`, true)
  if (!now && business()) show()
}

function show() {
  chosen ??= state.businesses[0].uid
  const { decision } = business()
  // The shown report belongs to the previous answer, so it is removed.
  const answer = `${chosen} ${decision?.entitled} ${decision?.known} ${state.isAppRunning}`
  if (answer !== shownAnswer) clearReport()
  shownAnswer = answer
  log.choose(chosen)
  showBusinesses()
  element('console').hidden = !state.consoleUrl
  if (state.consoleUrl) element('console').href = state.consoleUrl
  const news = showAnswer(business(), state)
  // A step of a story has its own text for screen readers.
  const isInStory = document.activeElement?.closest('.player')
  if (news && isLive && !isInStory) announce(news, inView.size > 0)
  if (!strip.isPlaying()) stations.show(business(), state)
  for (const button of document.querySelectorAll('[data-action]')) {
    allow(button, business().whyNot[button.dataset.action])
  }
  for (const button of document.querySelectorAll('[data-switch]')) showSwitch(button)
  allow(element('open-report'), null)
  allow(element('check'), state.isAppRunning ? null : 'The app is stopped')
  for (const button of document.querySelectorAll('.player .primary')) allow(button, null)
}

/** A disabled button can still have the focus, so that everybody can read the reason. */
function allow(button, whyNot) {
  const why = isLive ? whyNot : NOT_CONNECTED
  button.setAttribute('aria-disabled', String(Boolean(why)))
  button.title = why ?? ''
}

function showSwitch(button) {
  button.dataset.wordsOn ??= button.textContent
  const { switch: name, wordsOn, wordsOff } = button.dataset
  const isOn = name === 'isAppDown' ? !state.isAppRunning : state[name]
  if (button.textContent !== (isOn ? wordsOff : wordsOn)) button.textContent = isOn ? wordsOff : wordsOn
  button.dataset.isOn = String(isOn)
  allow(button, null)
}

/** The present action of a button, by its name in the code. */
function codeOf({ dataset: { code, isOn, on, off } }) {
  return code ?? (isOn === 'true' ? off : on)
}

function showBusinesses() {
  const list = element('businesses')
  for (const { uid, name, decision } of state.businesses) {
    let input = list.querySelector(`input[value="${uid}"]`)
    if (!input) {
      input = Object.assign(make('input'), { type: 'radio', name: 'business', value: uid })
      list.append(make('label', '', input, make('span', 'dot'), name))
    }
    input.checked = uid === chosen
    input.parentElement.dataset.entitled = String(decision?.entitled ?? false)
  }
}

function choose(uid) {
  if (uid !== chosen) strip.clear()
  chosen = uid
  history.replaceState(null, '', `#business=${chosen}`)
  show()
}

element('businesses').addEventListener('change', ({ target }) => choose(target.value))

document.addEventListener('click', async ({ target }) => {
  const button = target.closest('button')
  if (!button) return
  if (button.getAttribute('aria-disabled') === 'true') {
    return announce(`${button.textContent}: not now. ${button.title}.`)
  }
  if (!button.closest('.freely .pair') || button.matches('.opener')) return
  if (button.getAttribute('aria-busy') === 'true') return
  announce('')
  button.setAttribute('aria-busy', 'true')
  await press(button)
  button.removeAttribute('aria-busy')
})

async function press(button) {
  const { action } = button.dataset
  const at = `businesses/${encodeURIComponent(chosen)}`
  if (button.id === 'open-report') {
    const reply = await ask('GET', `${at}/report`)
    if (reply.status !== undefined) showReport(reply, (text) => announce(text, true))
  } else if (button.id === 'check') {
    const { why } = await ask('POST', `${at}/check`)
    if (!why)
      announce(business().decision?.asOf ? 'Read again just now.' : 'Asked again: there is nothing to read.')
  } else await ask('POST', action ? `${at}/actions/${action}` : `demo/${codeOf(button)}`)
}

async function playStep(name, number) {
  const { why } = await ask('POST', `stories/${name}/steps/${number}`)
  if (!why) await strip.rest()
  return why
}

/** Sends a request to the demo and returns its reply. Shows the reason of a refusal. */
async function ask(method, path) {
  try {
    const reply = await (await fetch(path, { method })).json()
    if (reply.why) announce(reply.why)
    return reply
  } catch {
    announce(`${NOT_CONNECTED}.`)
    return { why: NOT_CONNECTED }
  }
}

/** Sets the status line for screen readers. It is visible too, unless the text is elsewhere on the screen. */
function announce(text, isElsewhere = false) {
  element('status').classList.toggle('unseen', isElsewhere)
  setText('status', text)
}

setInterval(() => isLive && business() && showAge(business()), 1_000)
