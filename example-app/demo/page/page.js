/** The page: holds the state from the server, shows the chosen business, and sends the actions of the buttons. */
import { answerOf, showAge, showAnswer } from './answer.js'
import { clockTime } from './clock-time.js'
import { addCode } from './code.js'
import { createFrames } from './frames.js'
import { createLog } from './log.js'
import { make, setText } from './make.js'
import { clearReport, showReport } from './report.js'
import { createStories } from './stories.js'
import { createStrip } from './strip.js'

const element = (id) => document.getElementById(id)
const NOT_CONNECTED = 'The demo cannot be reached'

const log = createLog(element('causes'))
const strip = createStrip(element('strip'))
/** The state that is drawn. All parts of the page show it, and no newer one. */
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
const concerns = ({ business_uid }) => business_uid === undefined || business_uid === chosen
const frames = createFrames({
  draw,
  isSeen: ({ happening }) => happening !== undefined && concerns(happening),
  rest: strip.rest,
})

const guide = await (await fetch('guide')).json()
for (const row of document.querySelectorAll('.with-code')) addCode(row, guide.code, codeOf)
const stories = createStories({
  ...guide,
  ask,
  frames,
  choose,
  announce: (text) => announce(text, true),
})

const source = new EventSource('happenings')
source.addEventListener('error', () => showLive(false))
source.addEventListener('begin', ({ data }) => {
  const { past, ...frame } = JSON.parse(data)
  log.past(past)
  seenAt = Date.now()
  showLive(true)
  frames.begin(frame)
})
source.addEventListener('frame', ({ data }) => {
  seenAt = Date.now()
  frames.add(JSON.parse(data))
})

/** The only place that changes what is shown. */
function draw(frame) {
  state = frame.state
  const { happening } = frame
  if (happening) log.add(happening)
  if (happening && concerns(happening)) strip.light(happening)
  show()
}

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
  if (!now) show()
}

function show() {
  if (state.businesses.length === 0) return
  chosen ??= state.businesses[0].uid
  const { decision } = business()
  // The shown report belongs to the previous answer, so it is removed.
  const answer = `${chosen} ${decision?.entitled} ${decision?.known} ${state.app}`
  if (answer !== shownAnswer) clearReport()
  shownAnswer = answer
  log.choose(chosen)
  showBusinesses()
  showConsole()
  const news = showAnswer(business(), state)
  // A step of a story has its own text for screen readers.
  const isInStory = document.activeElement?.closest('.player')
  if (news && isLive && !isInStory) announce(news, inView.size > 0)
  strip.show(business(), state)
  strip.tell(log.newest(), business())
  stories.follow(business().uid, answerOf(business(), state))
  for (const button of document.querySelectorAll('[data-action]')) {
    allow(button, business().whyNot[button.dataset.action])
  }
  for (const button of document.querySelectorAll('[data-switch]')) showSwitch(button)
  allow(element('open-report'), null)
  allow(element('check'), WHY_NOT_CHECK[state.app])
  for (const button of document.querySelectorAll('.player .primary')) allow(button, null)
}

const WHY_NOT_CHECK = { running: null, starting: 'The app is starting', stopped: 'The app is stopped' }

/** The console is a part of the app, so it stops with the app. */
function showConsole() {
  const link = element('console')
  if (state.app === 'running') link.href = `${state.consoleUrl}#/business/${encodeURIComponent(chosen)}`
  else link.removeAttribute('href')
  link.title = WHY_NOT_CHECK[state.app] ?? ''
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
  const isOn = name === 'isAppDown' ? state.app === 'stopped' : state[name]
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
    input.parentElement.dataset.entitled = String(state.app === 'running' && (decision?.entitled ?? false))
  }
}

function choose(uid) {
  const isOther = uid !== chosen
  chosen = uid
  frames.catchUp()
  if (isOther) strip.putOut()
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
  const [path, method] = requestOf(button)
  // What waits to be drawn is drawn now: the press is done to the newest state.
  frames.catchUp()
  button.setAttribute('aria-busy', 'true')
  const reply = await ask(method, path)
  if (reply.frame) await frames.drawn(reply.frame)
  button.removeAttribute('aria-busy')
  if (reply.why) return
  if (button.id === 'open-report')
    showReport(reply, answerOf(business(), state), (text) => announce(text, true))
  if (button.id === 'check')
    announce(business().decision?.asOf ? 'Read again just now.' : 'Asked again: there is nothing to read.')
})

/** The request of a button, as it is labelled now. */
function requestOf(button) {
  const at = `businesses/${encodeURIComponent(chosen)}`
  const { action } = button.dataset
  if (button.id === 'open-report') return [`${at}/report`, 'GET']
  if (button.id === 'check') return [`${at}/check`, 'POST']
  return [action ? `${at}/actions/${action}` : `demo/${codeOf(button)}`, 'POST']
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
