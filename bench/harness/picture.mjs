import { spreadOf } from './statistics.mjs'

const WIDTH = 760
const NAMES_WIDTH = 330
const FIGURES_WIDTH = 150
const BAR_HEIGHT = 14
const BAR_STEP = 22
const PANEL_HEAD = 44
const MARGIN = 20

/**
 * The main figures as an SVG picture: bars are medians, thin lines reach from the minimum to the maximum. It has its
 * own background in both colour schemes, so it is readable on any page.
 */
export function picture({ parts, node, cpu, date }) {
  const panels = ['receiving', 'durable', 'draining'].flatMap((name) =>
    parts[name] ? [panelOf(parts[name])] : [],
  )
  let y = MARGIN
  const drawn = panels.map((panel) => {
    const text = draw(panel, y)
    y += PANEL_HEAD + panel.bars.length * BAR_STEP + 14
    return text
  })
  const height = y + 22
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title description" font-family="system-ui, sans-serif">
<title id="title">marketplace-webhooks beside its peers</title>
<desc id="description">${panels.map(inWords).join(' ')}</desc>
<style>
  .ground { fill: #ffffff; stroke: #d0d7de } .text { fill: #1f2328 } .faint { fill: #59636e }
  .ours { fill: #1a7f5a } .peer { fill: #afb8c1 } .range { stroke: #1f2328 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #3d444d } .text { fill: #f0f6fc } .faint { fill: #9198a1 }
    .ours { fill: #3fb27f } .peer { fill: #656c76 } .range { stroke: #f0f6fc }
  }
</style>
<rect class="ground" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${drawn.join('\n')}
<text class="faint" x="${MARGIN}" y="${height - 14}" font-size="11">${escaped(`judged on Node ${node} · ${cpu} · ${date}`)}</text>
</svg>
`
}

function panelOf({ title, rows }) {
  const bars = rows.map(({ name, values }) => ({
    name,
    spread: spreadOf(values.perSecond),
    isOurs: /marketplace-webhooks/.test(name) || title === 'Draining a backlog',
  }))
  return { title, bars }
}

function draw({ title, bars }, top) {
  const left = MARGIN + NAMES_WIDTH
  const longest = Math.max(...bars.map(({ spread }) => spread.max))
  const x = (value) => Math.round(left + (value / longest) * (WIDTH - left - FIGURES_WIDTH - MARGIN))
  const rowsTop = top + PANEL_HEAD
  const rows = bars.map(({ name, spread, isOurs }, i) => {
    const y = rowsTop + i * BAR_STEP
    const middle = y + BAR_HEIGHT / 2
    const { median, min, max } = spread
    const range =
      min === max
        ? ''
        : `<path class="range" d="M${x(min)} ${middle}H${x(max)}M${x(min)} ${middle - 4}v8M${x(max)} ${middle - 4}v8"/>`
    const figures = [median, min, max].map((value) => Math.round(value).toLocaleString('en'))
    const text = min === max ? figures[0] : `${figures[0]} (${figures[1]}–${figures[2]})`
    return `<text class="text" x="${left - 10}" y="${middle + 4}" font-size="12" text-anchor="end"${isOurs ? ' font-weight="600"' : ''}>${escaped(name)}</text>
<rect class="${isOurs ? 'ours' : 'peer'}" x="${left}" y="${y}" width="${Math.max(1, x(median) - left)}" height="${BAR_HEIGHT}" rx="2"/>${range}
<text class="text" x="${WIDTH - MARGIN}" y="${middle + 4}" font-size="11" text-anchor="end">${text}</text>`
  })
  return `<text class="text" x="${MARGIN}" y="${top + 14}" font-size="15" font-weight="600">${escaped(title)}</text>
<text class="faint" x="${MARGIN}" y="${top + 31}" font-size="12">a second, longer is better</text>
${rows.join('\n')}`
}

function inWords({ title, bars }) {
  return escaped(
    `${title}: ${bars.map(({ name, spread }) => `${name} ${Math.round(spread.median)}`).join(', ')}.`,
  )
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
