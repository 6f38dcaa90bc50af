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
  watchPicture,
  pictures,
  contradictions,
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

/** The headings of what is completely in sight. */
function partsInSight() {
  return [...document.querySelectorAll('#console, h1, .station, .cover, #story-press .primary')].flatMap(
    (element) => {
      const { top, bottom } = element.getBoundingClientRect()
      return top >= 0 && bottom <= innerHeight
        ? [(element.querySelector('h3, strong') ?? element).textContent]
        : []
    },
  )
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

/** From now on records each picture that the page shows. */
function watchPicture() {
  globalThis.shownPictures = [picture()]
  new MutationObserver(() => {
    const now = picture()
    const last = globalThis.shownPictures.at(-1)
    if (JSON.stringify(now) !== JSON.stringify(last)) globalThis.shownPictures.push(now)
  }).observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true })
}

function pictures() {
  return globalThis.shownPictures
}

/** Every place of the page that shows a state, by what it shows. */
function picture() {
  const textOf = (selector) => document.querySelector(selector)?.textContent.trim() ?? ''
  const isOn = (name) => document.querySelector(`[data-switch="${name}"]`).dataset.isOn === 'true'
  const title = (action) => document.querySelector(`[data-action="${action}"]`).title
  return {
    platform: textOf('#strip-truth'),
    package: textOf('#strip-known'),
    app: textOf('#strip-answer'),
    caption: `${textOf('#strip-whose')} ${textOf('#strip-words')}`.trim(),
    headline: textOf('#headline'),
    truth: textOf('#truth'),
    known: textOf('#known'),
    visit: document.querySelector('.request')?.dataset.status ?? '',
    chosen: textOf('label:has(:checked)'),
    dot: document.querySelector('label:has(:checked)')?.dataset.entitled ?? '',
    cutOff: isOn('isCutOff'),
    slow: isOn('isSlow'),
    down: isOn('isAppDown'),
    buy: title('buy'),
    decided: newestDecision(),
    story: document.querySelector('#player:not([hidden])') ? textOf('#story-title') : '',
    next: textOf('#story-press .primary:not([aria-busy])'),
  }
}

/** The newest decision in the log, which is in the order of what caused it. */
function newestDecision() {
  const rows = [...document.querySelectorAll('#causes [data-kind="decision"]')]
  const [newest] = rows.sort((a, b) => b.dataset.id - a.dataset.id)
  return newest?.querySelector('.words').textContent ?? ''
}

/** The pairs that must agree in every picture, and whether they do not. */
const CONTRADICTIONS = {
  'the app and the answer': ({ app, headline }) =>
    ![
      'One moment: One moment',
      'Report open: Let in',
      'Report closed: Not let in',
      'Report closed: No purchase known',
      'Not known yet: Not known yet',
      'Starting: The app is starting',
      'Stopped: The app is stopped',
    ].includes(`${app}: ${headline}`),
  'the dot of the business and the answer': ({ dot, headline }) =>
    (dot === 'true') !== (headline === 'Let in'),
  'the platform in two places': ({ platform, truth }) => platform !== truth && truth !== '–',
  'the package in two places': ({ package: known, known: fact, app }) =>
    !['Stopped', 'Starting', 'One moment'].includes(app) && known !== fact,
  'nothing bought, and a customer': ({ platform, app, package: known }) =>
    /^nothing bought/.test(platform) && (app === 'Report open' || /purchased|suspended|canceled/.test(known)),
  'the report and the record that decides it': ({ app, package: known }) =>
    (app === 'Report open' && !known.startsWith('purchased')) ||
    (app === 'Report closed' && known.startsWith('purchased')),
  'the platform and the package, without a reason': ({ platform, package: known, app }) =>
    ['Report open', 'Report closed'].includes(app) &&
    known.replace('nothing known', 'nothing bought') !== platform.replace(/, .*/, '') &&
    !/, behind$| yet$|^no longer shown$/.test(known),
  'the visit and the app': ({ visit, app }) => visit !== '' && !VISITS[visit].includes(app),
  'the switches and the platform': ({ platform, cutOff, slow }) =>
    cutOff !== platform.endsWith(', cut off') || (slow && !cutOff) !== platform.endsWith(', slow'),
  'the switch and the app': ({ down, app }) => down !== (app === 'Stopped'),
  'the buttons and the platform': ({ buy, platform }) =>
    platform !== 'One moment' && (buy === '') !== /^(nothing bought|canceled)/.test(platform),
  'the words and the picture': (shown) =>
    WORDS.some(([words, agrees]) => words.test(shown.caption) && !agrees(shown)),
  'the log and the app': ({ decided, app }) =>
    decided !== '' &&
    ((app === 'Report open' && !decided.startsWith('Let in')) ||
      (app === 'Report closed' && !decided.startsWith('Not let in'))),
  'the words and the business': ({ caption, chosen }) =>
    NAMES.some((name) => name !== chosen && caption.includes(name)),
  'the story and the picture': ({ story, next, app, chosen }) =>
    story !== '' &&
    (chosen !== BUSINESS_OF[story] || (STEPS[`${story}: ${next}`] ?? [app]).includes(app) === false),
}

const VISITS = {
  200: ['Report open'],
  402: ['Report closed'],
  503: ['Not known yet'],
  0: ['Stopped', 'Starting'],
}
const NAMES = ['Bakery Lindt', 'Yoga Studio Mitte', 'Café Morgenrot', 'Radhaus Becker', 'Salon Aurora']
const BUSINESS_OF = {
  'A customer pays': 'Bakery Lindt',
  'A customer misses a payment': 'Yoga Studio Mitte',
  'The app dies': 'Café Morgenrot',
}
const STEPS = {
  'A customer pays: Buy and pay': ['Report closed'],
  'A customer misses a payment: Buy and pay': ['Report closed'],
  'A customer misses a payment: Miss a payment': ['Report open'],
  'A customer misses a payment: Open the report': ['Report closed'],
  'A customer misses a payment: Confirm payment': ['Report closed'],
  'The app dies: Buy, then kill -9': ['Report closed'],
  'The app dies: Miss a payment, then pay': ['Stopped'],
  'The app dies: Start the app': ['Stopped'],
}
const WORDS = [
  [/Let in \(/, ({ app }) => app === 'Report open'],
  [/Not let in \(/, ({ app }) => app === 'Report closed'],
  [/Not known yet \(/, ({ app }) => app === 'Not known yet'],
  [/opens the report: 200/, ({ app }) => app === 'Report open'],
  [/opens the report: 402/, ({ app }) => app === 'Report closed'],
  [/opens the report: no answer/, ({ app }) => ['Stopped', 'Starting'].includes(app)],
  [
    /is called: .* → (purchased|suspended|canceled)/,
    ({ caption, package: known, app }) =>
      known.startsWith(caption.match(/→ (\w+)/)[1]) || ['Stopped', 'Starting', 'Not known yet'].includes(app),
  ],
  [
    /buys the app, and the payment succeeds|pays, and the payment is/,
    ({ platform }) => /^purchased/.test(platform),
  ],
  [/buys the app, and the payment fails|misses a payment\./, ({ platform }) => /^suspended/.test(platform)],
  [/misses a payment, then pays/, ({ platform }) => /^purchased/.test(platform)],
  [/cancels the subscription|uninstalls/, ({ platform }) => /^(canceled|nothing)/.test(platform)],
  [/is killed/, ({ app }) => app === 'Stopped'],
  [/The app starts/, ({ app }) => app === 'Starting'],
  [/The app is running/, ({ app }) => !['Stopped', 'Starting'].includes(app)],
  [/is cut off/, ({ cutOff }) => cutOff],
  [/can be reached again/, ({ cutOff }) => !cutOff],
  [/s for every answer/, ({ slow }) => slow],
  [/answers at once again/, ({ slow }) => !slow],
  [/Nothing is on its way/, ({ platform }) => /^nothing bought/.test(platform)],
]

/** The contradictions in all pictures since the watch began. */
function contradictions() {
  const found = globalThis.shownPictures.flatMap((shown) =>
    Object.entries(CONTRADICTIONS)
      .filter(([, isContradictory]) => isContradictory(shown))
      .map(([what]) => `${what}: ${JSON.stringify(shown)}`),
  )
  return [...new Set(found)]
}
