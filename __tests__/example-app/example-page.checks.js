/** The checks that example-page.test.ts runs in the page. */
globalThis.pageChecks = {
  faintTexts,
  movingElements,
  focusedWords,
  hasFocusInSearch,
  outlineOfFocus,
  neededWidth,
  liveRegions,
  isGrey,
  isHeadlineGrey,
  partsInSight,
  watchStrip,
  litOfStrip,
  shortestLight,
}

/** The texts whose contrast is below 4.5 : 1 (WCAG 2.2, 1.4.3, which exempts inactive controls). */
function faintTexts() {
  const size = { width: 1, height: 1 }
  const pen = Object.assign(document.createElement('canvas'), size).getContext('2d', {
    willReadFrequently: true,
  })

  /** The luminance of colours laid over one another. The canvas converts every notation. */
  function luminance(colours) {
    pen.clearRect(0, 0, 1, 1)
    for (const colour of colours) {
      pen.fillStyle = colour
      pen.fillRect(0, 0, 1, 1)
    }
    const [red, green, blue] = [...pen.getImageData(0, 0, 1, 1).data]
      .map((part) => part / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }

  return [...document.querySelectorAll('body *')].flatMap((element) => {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())
    if (!hasText || element.closest('[aria-disabled="true"], .unseen, .checking, noscript')) return []
    if (!element.checkVisibility()) return []
    const grounds = []
    for (let at = element; at; at = at.parentElement) grounds.unshift(getComputedStyle(at).backgroundColor)
    const behind = luminance(grounds)
    const written = luminance([...grounds, getComputedStyle(element).color])
    const ratio = (Math.max(behind, written) + 0.05) / (Math.min(behind, written) + 0.05)
    return ratio < 4.5 ? [`${element.textContent.trim()} (${ratio.toFixed(2)})`] : []
  })
}

/** The elements that move or fade. */
function movingElements() {
  return [...document.querySelectorAll('*')].flatMap((element) =>
    ['', '::before', '::after'].flatMap((part) => {
      const { animationName, transitionDuration } = getComputedStyle(element, part)
      return animationName === 'none' && transitionDuration === '0s' ? [] : [`${element.className}${part}`]
    }),
  )
}

/** The visible text of the element that has the focus. */
function focusedWords() {
  const element = document.activeElement
  return (element.closest('label') ?? element).textContent.trim()
}

function hasFocusInSearch() {
  return document.activeElement.closest('.search') !== null
}

function outlineOfFocus() {
  return getComputedStyle(document.activeElement).outlineStyle
}

/** The texts that a screen reader announces without being asked, by id. */
function liveRegions() {
  const roles = ['alert', 'log', 'status', 'timer', 'marquee'].map((role) => `[role="${role}"]`)
  const all = document.querySelectorAll([...roles, '[aria-live]', 'output'].join())
  return [...all].map(({ id, className }) => id || className)
}

/** Whether the page is shown in grey. */
function isGrey() {
  return getComputedStyle(document.documentElement).filter === 'grayscale(1)'
}

/** Whether the answer has the same colour as ordinary text. */
function isHeadlineGrey() {
  const colourOf = (selector) => getComputedStyle(document.querySelector(selector)).color
  return colourOf('#headline') === colourOf('body')
}

/** The headings of the sections that fit on the first screen. */
function partsInSight() {
  return [...document.querySelectorAll('h1, .station, .cover')].flatMap((element) => {
    const { top, bottom } = element.getBoundingClientRect()
    return top >= 0 && bottom <= innerHeight
      ? [(element.querySelector('h3, strong') ?? element).textContent]
      : []
  })
}

/** From now on records which parts of the strip are lit together. */
function watchStrip() {
  globalThis.litParts = []
  new MutationObserver(() => {
    const lit = [...document.querySelectorAll('#strip [data-lit="now"]')].map(({ dataset }) => dataset.part)
    const parts = lit.join()
    if (parts && parts !== globalThis.litParts.at(-1)?.parts)
      globalThis.litParts.push({ parts, at: performance.now() })
  }).observe(document.getElementById('strip'), { subtree: true, attributeFilter: ['data-lit'] })
}

function litOfStrip() {
  return globalThis.litParts.map(({ parts }) => parts)
}

/** The shortest time in milliseconds for which parts were lit before others were. */
function shortestLight() {
  return Math.min(...globalThis.litParts.slice(1).map(({ at }, i) => at - globalThis.litParts[i].at))
}

/** The width that the page needs. */
function neededWidth() {
  return document.documentElement.scrollWidth
}
