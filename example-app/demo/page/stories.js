/** The guided stories: the covers to choose from, and the player of the chosen one, a step at a time. */
import { addCode } from './code.js'
import { make, setText } from './make.js'

const element = (id) => document.getElementById(id)

/**
 * `playStep(name, number)` performs a step and resolves to null, or to the reason why it failed. `choose(uid)` shows the
 * business of the story. `announce(text)` passes the result to screen readers.
 */
export function createStories({ stories, code, playStep, choose, announce }) {
  let chosen
  /** Number of finished steps of the chosen story. */
  let done = 0

  const covers = stories.map((story) => {
    const cover = make('button', 'cover', make('strong', '', story.title), make('span', '', story.summary))
    cover.type = 'button'
    cover.setAttribute('aria-expanded', 'false')
    cover.setAttribute('aria-controls', 'player')
    cover.addEventListener('click', () => open(story))
    return cover
  })
  element('covers').append(...covers)

  function open(story) {
    chosen = chosen === story ? undefined : story
    covers.forEach((cover, i) => {
      cover.setAttribute('aria-expanded', String(stories[i] === chosen))
    })
    element('player').hidden = !chosen
    if (!chosen) return
    begin()
    choose(chosen.business_uid)
  }

  function begin() {
    done = 0
    show()
    element('story-press').querySelector('button').focus({ preventScroll: true })
    element('player').closest('.card').scrollIntoView({ block: 'nearest' })
  }

  function show() {
    const { title, steps, end } = chosen
    const step = steps[done]
    setText('story-title', title)
    setText('story-count', step ? `Step ${done + 1} of ${steps.length}` : 'The end')
    element('story-after').hidden = done === 0
    setText('story-after', steps[done - 1]?.after ?? '')
    setText('story-before', step ? step.before : end)
    element('player').dataset.at = step ? 'step' : 'end'
    const button = step ? buttonOf(step) : againButton()
    const row = make('div', 'buttons with-code', button)
    element('story-press').replaceChildren(row)
    if (step) addCode(row, code)
  }

  function buttonOf({ press, button: name }) {
    const button = make('button', 'primary', press)
    button.type = 'button'
    button.dataset.code = name
    button.addEventListener('click', () => play(button))
    return button
  }

  async function play(button) {
    if (button.getAttribute('aria-busy') === 'true' || button.getAttribute('aria-disabled') === 'true') return
    const [story, number] = [chosen, done]
    button.setAttribute('aria-busy', 'true')
    choose(story.business_uid)
    element('strip').scrollIntoView({ block: 'nearest' })
    const why = await playStep(story.name, number)
    button.removeAttribute('aria-busy')
    // The person may have opened another story in the meantime.
    if (why || chosen !== story || done !== number) return
    const hadFocus = document.activeElement === button
    done += 1
    show()
    element('player').scrollIntoView({ block: 'nearest' })
    announce(`Step ${done} of ${story.steps.length}: ${story.steps[number].after}`)
    if (hadFocus) element('story-press').querySelector('button').focus({ preventScroll: true })
  }

  function againButton() {
    const button = make('button', '', 'Play it again')
    button.type = 'button'
    button.addEventListener('click', begin)
    return button
  }
}
