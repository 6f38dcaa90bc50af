import {
  entitlementRatio,
  type Measured,
  type Results,
  ratioOf,
  type Server,
  type Spread,
} from './results.js'

interface Bar {
  name: string
  spread: Spread
  isOurs: boolean
}

interface Panel {
  title: string
  note: string
  bars: Bar[]
}

const WIDTH = 720
const NAMES_WIDTH = 190
const FIGURES_WIDTH = 130
const BAR_HEIGHT = 16
const BAR_STEP = 26
const PANEL_HEAD = 44
const MARGIN = 20

/**
 * The results as an SVG picture: bars are medians of the ratios within a round, thin lines their range. It brings its
 * own background in both colour schemes, so it is readable on any page.
 */
export function picture(results: Results): string {
  const panels = panelsOf(results)
  let y = MARGIN
  const drawn = panels.map((panel) => {
    const text = draw(panel, y)
    y += PANEL_HEAD + panel.bars.length * BAR_STEP + 14
    return text
  })
  const height = y + 22
  const origin = `Node ${results.node} · ${results.sqlite} · ${results.cpu} · ${results.date}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title description" font-family="system-ui, sans-serif">
<title id="title">marketplace-webhooks beside its peers</title>
<desc id="description">${panels.map(inWords).join(' ')}</desc>
<style>
  .ground { fill: #ffffff; stroke: #d0d7de } .text { fill: #1f2328 } .faint { fill: #59636e }
  .ours { fill: #1a7f5a } .peer { fill: #afb8c1 } .range { stroke: #1f2328 } .one { stroke: #59636e }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #3d444d } .text { fill: #f0f6fc } .faint { fill: #9198a1 }
    .ours { fill: #3fb27f } .peer { fill: #656c76 } .range { stroke: #f0f6fc } .one { stroke: #9198a1 }
  }
</style>
<rect class="ground" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${drawn.join('\n')}
<text class="faint" x="${MARGIN}" y="${height - 14}" font-size="11">${escaped(origin)}</text>
</svg>
`
}

function panelsOf(results: Results): Panel[] {
  const bars = (what: keyof Measured) =>
    BARS.map(([server, name]) =>
      bar(name, ratioOf(results, server, 'express', what), server === 'marketplace'),
    )
  return [
    {
      title: 'Deliveries per second',
      note: 'bare Express route = 1, longer is better',
      bars: bars('requestsPerSecond'),
    },
    { title: 'p99 latency', note: 'bare Express route = 1, shorter is better', bars: bars('p99Ms') },
    {
      title: 'Time of a warm isEntitled',
      note: 'awaited lru-cache get = 1, shorter is better',
      bars: [bar('isEntitled', entitlementRatio(results), true), bar('lru-cache get', ONE, false)],
    },
  ]
}

const ONE: Spread = { median: 1, min: 1, max: 1 }
const BARS: readonly [Server, string][] = [
  ['marketplace', 'marketplace-webhooks'],
  ['express', 'bare Express route'],
  ['octokit', '@octokit/webhooks'],
]

function bar(name: string, spread: Spread, isOurs: boolean): Bar {
  return { name, spread, isOurs }
}

function draw({ title, note, bars }: Panel, top: number): string {
  const left = MARGIN + NAMES_WIDTH
  const longest = Math.max(...bars.map(({ spread }) => spread.max))
  const x = (ratio: number) => Math.round(left + (ratio / longest) * (WIDTH - left - FIGURES_WIDTH - MARGIN))
  const rowsTop = top + PANEL_HEAD
  const rows = bars.map(({ name, spread, isOurs }, i) => {
    const y = rowsTop + i * BAR_STEP
    const middle = y + BAR_HEIGHT / 2
    const figures =
      spread.min === spread.max
        ? '1'
        : `${spread.median.toFixed(2)} × (${spread.min.toFixed(2)}–${spread.max.toFixed(2)})`
    const range =
      spread.min === spread.max
        ? ''
        : `<path class="range" d="M${x(spread.min)} ${middle}H${x(spread.max)}M${x(spread.min)} ${middle - 4}v8M${x(spread.max)} ${middle - 4}v8"/>`
    return `<text class="text" x="${left - 10}" y="${middle + 4}" font-size="13" text-anchor="end"${isOurs ? ' font-weight="600"' : ''}>${escaped(name)}</text>
<rect class="${isOurs ? 'ours' : 'peer'}" x="${left}" y="${y}" width="${x(spread.median) - left}" height="${BAR_HEIGHT}" rx="2"/>${range}
<text class="text" x="${WIDTH - MARGIN}" y="${middle + 4}" font-size="12" text-anchor="end">${figures}</text>`
  })
  const line = `<path class="one" stroke-dasharray="2 3" d="M${x(1)} ${rowsTop - 6}v${bars.length * BAR_STEP + 2}"/>`
  return `<text class="text" x="${MARGIN}" y="${top + 14}" font-size="15" font-weight="600">${escaped(title)}</text>
<text class="faint" x="${MARGIN}" y="${top + 31}" font-size="12">${escaped(note)}</text>
${rows.join('\n')}
${line}`
}

function inWords({ title, note, bars }: Panel): string {
  const figures = bars.map(({ name, spread }) => `${name} ${spread.median.toFixed(2)}`)
  return escaped(`${title} (${note}): ${figures.join(', ')}.`)
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
