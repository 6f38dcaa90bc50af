import { type EvidenceRecord, inWords, type Part, type Scope, type Step, sumOf } from './part.js'
import type { Records } from './records.js'

/** What the records of a run say. */
export interface Verdict {
  page: string
  /** What did not hold. */
  broken: string[]
  /** Which parts have steps without a record. */
  missing: string[]
}

/**
 * The page of these parts: a sentence for everybody, and a table, all from the records. `partial`: where a whole run has made no
 * step yet, those of a short one count.
 */
export function verdictOf(parts: readonly Part[], scope: Scope | 'partial', records: Records): Verdict {
  const all = records.all()
  const broken: string[] = []
  const missing: string[] = []
  const rows: string[] = []
  const spans: string[] = []
  const used: EvidenceRecord[] = []
  for (const part of parts) {
    const madeOf = (steps: readonly Step[]) =>
      all.filter(({ part: name, step }) => name === part.name && steps.some(({ id }) => id === step))
    const steps = part.steps(scope === 'partial' ? 'whole' : scope)
    const made = madeOf(steps)
    const own = scope === 'partial' && made.length === 0 ? madeOf(part.steps('short')) : made
    used.push(...own)
    if (made.length < steps.length) missing.push(`${part.name} ${made.length}/${steps.length}`)
    if (own.length === 0) continue
    const { amount, result, broken: ofAll = [] } = part.row(own)
    const ofPart = [...own.flatMap((record) => record.broken), ...ofAll]
    broken.push(...ofPart.map((what) => `${part.name}: ${what}`))
    const word = ofPart.length > 0 ? `**broken (${ofPart.length})**: ` : ''
    const seed = /^[\w./-]+$/.test(part.example) ? part.example : `'${part.example}'`
    rows.push(`| ${part.title} | ${amount} | ${word}${result} | \`${part.name} ${seed}\` |`)
    spans.push(`${part.name} ${own.at(0)?.step}${own.length > 1 ? ` to ${own.at(-1)?.step}` : ''}`)
  }
  const dates = used.map(({ at }) => at.slice(0, 10)).sort()
  const commits = [...new Set(used.map(({ commit }) => `\`${commit.slice(0, 12)}\``))].join(', ')
  const versions = [...new Set(used.map(({ node }) => node))].join(', ')
  const days = dates[0] === dates.at(-1) ? dates[0] : `${dates[0]} to ${dates.at(-1)}`
  const page = `# Evidence

${sentenceOf(used, broken)}

| What was tried | How much | Result | Repeat |
|---|---|---|---|
${rows.join('\n')}
${missing.length > 0 ? `\n**Not whole**, steps made: ${missing.join(', ')}.${scope === 'partial' ? ' Where it made no step yet, the table has those of a short run.' : ''}\n` : ''}${broken.length > 0 ? `\n**Did not hold**: ${broken.slice(0, 5).map(inOneLine).join('; ')}${broken.length > 5 ? `; and ${broken.length - 5} more` : ''}.\n` : ''}
Repeat one: \`npm run evidence -- repeat <last column>\`, or a step of the last line. Some of each in ten minutes: \`npm run evidence -- --short\`. Limits: [guarantees](guarantees.md).

Commit ${commits}, Node ${versions}, ${days}. Steps: ${spans.join('; ')}.
`
  return { page, broken, missing }
}

/** An error may come with its stack. */
function inOneLine(what: string): string {
  const line = what.replace(/\s+/g, ' ')
  return line.length > 300 ? `${line.slice(0, 300)}…` : line
}

/** Whatever did not hold of these may be a lost delivery or a wrong answer. */
const LIVED = ['kills', 'power-cuts', 'bodies', 'worlds', 'months']

/** What a buyer of the package wants to know. It names only what was tried. */
function sentenceOf(records: readonly EvidenceRecord[], broken: readonly string[]): string {
  const of = (part: string) => records.filter((record) => record.part === part)
  const [kills, cuts] = [sumOf(of('kills'), 'kills'), sumOf(of('power-cuts'), 'cuts')]
  const [worlds, years] = [sumOf(of('worlds'), 'worlds'), sumOf(of('months'), 'days') / 365]
  const acknowledged = sumOf(of('kills'), 'acknowledged') + sumOf(of('power-cuts'), 'acknowledged')
  const [lost, wrong] = [sumOf(records, 'lost'), sumOf(of('kills'), 'wrong')]
  const tried = [
    ...(kills > 0 ? [`${inWords(kills)} kills of a server at work`] : []),
    ...(cuts > 0 ? [`${inWords(cuts)} power cuts of a simulated disk`] : []),
    ...(worlds > 0 ? [`${inWords(worlds)} simulated worlds full of faults`] : []),
    ...(years > 0
      ? [
          `${years < 10 ? years.toFixed(1) : inWords(years)} simulated years with mistakes, outages and quiet months`,
        ]
      : []),
  ]
  const hasHeld = LIVED.flatMap(of).every((record) => record.broken.length === 0)
  const results = [
    ...(lost > 0 ? [`it lost ${inWords(lost)} of its ${inWords(acknowledged)} acknowledged deliveries`] : []),
    ...(lost === 0 && acknowledged > 0 && hasHeld
      ? [`none of its ${inWords(acknowledged)} acknowledged deliveries was lost`]
      : []),
    ...(wrong > 0 ? [`it left ${inWords(wrong)} wrong among its answers and changes`] : []),
    ...(wrong === 0 && kills > 0 && hasHeld ? ['no customer was left with a wrong answer'] : []),
  ]
  if (results.length === 0 && broken.length === 0) results.push('all of it held')
  const rest = broken.length > 0 ? ` What did not hold is named below (${broken.length}).` : ''
  if (tried.length === 0)
    return `**${broken.length === 0 ? 'All that was tried held.' : 'Not all that was tried held.'}**${rest}`
  const list = new Intl.ListFormat('en-US').format(tried)
  return `**This package was tried in ${list}${results.length > 0 ? `: ${results.join(', and ')}` : ''}.**${rest}`
}
