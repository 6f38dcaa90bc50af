/** The guided stories: the covers to choose from, and the player of the chosen one, a step at a time. */
import { addCode } from './code.js'
import { make, setText } from './make.js'

const element = (id) => document.getElementById(id)

/** What a story says of the report, by the answer for its business. */
const REPORTS = { yes: 'open', no: 'closed', none: 'closed', stopped: 'stopped' }

/**
 * `ask` sends a request to the demo, `frames` are what the page draws, `choose(uid)` shows the business of the story, and
 * `announce(text)` passes the result of a step to screen readers.
 */
export function createStories({ stories, code, ask, frames, choose, announce }) {
  let chosen
  /** Number of finished steps of the chosen story. */
  let done = 0
  /**
   * `set`: the scene is being set. `at rest`: the page shows the state that the next step needs. `played`: a step is performed.
   * `left`: a step has failed, or somebody else has acted.
   */
  let phase = 'at rest'
  /** What the page shows of the report of the business. */
  let report
  /** Each beginning of a story. A reply to an earlier one changes nothing. */
  let run

  const covers = stories.map((story) => {
    const cover = make('button', 'cover', make('strong', '', story.title), make('span', '', story.summary))
    cover.type = 'button'
    cover.setAttribute('aria-expanded', 'false')
    cover.setAttribute('aria-controls', 'player')
    cover.addEventListener('click', () => open(chosen === story ? undefined : story))
    return cover
  })
  element('covers').append(...covers)

  function open(story) {
    chosen = story
    run = undefined
    covers.forEach((cover, i) => {
      cover.setAttribute('aria-expanded', String(stories[i] === chosen))
    })
    element('player').hidden = !chosen
    if (chosen) void begin()
  }

  async function begin() {
    const mine = {}
    run = mine
    done = 0
    phase = 'set'
    choose(chosen.business_uid)
    show()
    element('player').closest('.card').scrollIntoView({ block: 'nearest' })
    const { why, frame } = await ask('POST', `stories/${chosen.name}/scene`)
    if (run !== mine) return
    if (!why) {
      frames.catchUp(frame)
      await frames.drawn(frame)
      if (run !== mine) return
    }
    rest(why)
    element('story-press').querySelector('button').focus({ preventScroll: true })
  }

  /** Shows the next step if it fits the state that is drawn. */
  function rest(why) {
    phase = !why && report === neededNext() ? 'at rest' : 'left'
    show()
    element('player').closest('.card').scrollIntoView({ block: 'nearest' })
  }

  function neededNext() {
    return chosen.steps[done]?.report ?? 'open'
  }

  function show() {
    const { title, steps, end } = chosen
    const step = steps[done]
    const isAtRest = phase === 'at rest'
    setText('story-title', title)
    setText('story-count', step ? `Step ${done + 1} of ${steps.length}` : 'The end')
    element('story-after').hidden = done === 0 || !isAtRest
    setText('story-after', steps[done - 1]?.after ?? '')
    setText('story-before', WORDS[phase] ?? step?.before ?? end)
    element('player').dataset.at = step || !isAtRest ? 'step' : 'end'
    const button = phase === 'set' ? '' : isAtRest && step ? buttonOf(step) : againButton()
    const row = make('div', 'buttons with-code', button)
    element('story-press').replaceChildren(row)
    if (isAtRest && step) addCode(row, code)
  }

  function buttonOf({ press, button: name }) {
    const button = make('button', 'primary', press)
    button.type = 'button'
    button.dataset.code = name
    button.addEventListener('click', () => play(button))
    return button
  }

  async function play(button) {
    if (phase !== 'at rest' || button.getAttribute('aria-disabled') === 'true') return
    const [story, mine] = [chosen, run]
    phase = 'played'
    button.setAttribute('aria-busy', 'true')
    frames.catchUp()
    element('player').closest('.card').scrollIntoView({ block: 'nearest' })
    const { why, frame } = await ask('POST', `stories/${story.name}/steps/${done}`)
    if (!why) await frames.drawn(frame)
    // The person may have opened another story in the meantime.
    if (run !== mine) return
    const hadFocus = document.activeElement === button
    if (!why) done += 1
    rest(why)
    if (!why) announce(`Step ${done} of ${story.steps.length}: ${story.steps[done - 1].after}`)
    if (hadFocus) element('story-press').querySelector('button').focus({ preventScroll: true })
  }

  function againButton() {
    const button = make('button', '', 'Play it again')
    button.type = 'button'
    button.addEventListener('click', begin)
    return button
  }

  return {
    /** Compares the story with the state that is drawn. */
    follow(uid, answer) {
      if (!chosen) return
      if (uid !== chosen.business_uid) return open(undefined)
      report = REPORTS[answer]
      if (phase === 'at rest' && report !== neededNext()) rest()
    },
  }
}

const WORDS = {
  set: 'One moment: the story begins with an app that runs, and a business without a subscription.',
  left: 'Something else was done in the meantime, so the next step does not fit any more.',
}
