/** A second button beside each button shows its code below the row. */
import { make } from './make.js'

const WHOSE = { app: 'Your app', demo: 'The demo, in place of the platform' }
let count = 0

/** Adds the code to every button of a row. One piece is open at a time. `nameOf` returns the present action of a button. */
export function addCode(row, code, nameOf = (button) => button.dataset.code) {
  count += 1
  const place = make('div', 'code')
  place.id = `code-${count}`
  place.hidden = true
  row.after(place)

  function show(openers, opened, button) {
    for (const each of openers) each.setAttribute('aria-expanded', String(each === opened))
    place.hidden = opened === undefined
    place.replaceChildren(...(opened ? piecesOf(code[nameOf(button)]) : []))
  }

  const openers = []
  for (const button of [...row.querySelectorAll('button')]) {
    const opener = make('button', 'opener', icon())
    opener.type = 'button'
    opener.setAttribute('aria-expanded', 'false')
    opener.setAttribute('aria-controls', place.id)
    opener.setAttribute('aria-label', `Code behind ${button.textContent}`)
    opener.title = 'The code behind it'
    openers.push(opener)
    const pair = make('span', 'pair')
    button.replaceWith(pair)
    pair.append(button, opener)
    opener.addEventListener('click', () => {
      const isOpen = opener.getAttribute('aria-expanded') === 'true'
      show(openers, isOpen ? undefined : opener, button)
    })
  }
}

function piecesOf(pieces) {
  return pieces.map(({ of, file, text }, i) => {
    const figure = make('figure', 'piece')
    const block = make('pre', '', make('code', '', ...coloured(text)))
    block.tabIndex = 0
    block.setAttribute('aria-label', `${WHOSE[of]}, ${file}`)
    block.setAttribute('role', 'group')
    if (file !== pieces[i - 1]?.file)
      figure.append(make('figcaption', '', `${WHOSE[of]} `, make('span', 'file', file)))
    figure.append(block)
    return figure
  })
}

const TOKENS =
  /(\/\/.*|\/\*\*.*?\*\/)|('[^'\n]*'|`[^`]*`)|\b(await|async|const|return|new|if|throw|try|finally|function)\b/g

/** Comments, texts and keywords. */
function coloured(text) {
  const parts = []
  let end = 0
  for (const { 0: token, 1: comment, 2: string, index } of text.matchAll(TOKENS)) {
    parts.push(
      text.slice(end, index),
      make('span', comment ? 'comment' : string ? 'string' : 'keyword', token),
    )
    end = index + token.length
  }
  return [...parts, text.slice(end)]
}

function icon() {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  svg.setAttribute('viewBox', '0 0 24 24')
  svg.setAttribute('aria-hidden', 'true')
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  path.setAttribute('d', 'M8 7l-5 5 5 5M16 7l5 5-5 5')
  svg.append(path)
  return svg
}
