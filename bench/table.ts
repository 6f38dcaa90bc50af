import {
  aims,
  entitlementRatio,
  type Measured,
  type Results,
  ratioOf,
  SERVER_NAMES,
  type Server,
  type Spread,
  spreadOf,
} from './results.js'

/** The results as a Markdown page. */
export function markdown(results: Results): string {
  const { command, date, node, sqlite, cpu, connections, secondsPerRound, receiving, drainedAfterMs } =
    results
  const entitlement = results.entitlement
  return `# Benchmark results

\`${command}\` on ${date} · Node ${node} · ${sqlite} · ${cpu}

${aims(results)
  .map(({ aim, reached }) => `- Aim: ${aim}: **${reached ? 'reached' : 'not reached'}**`)
  .join('\n')}

![Receiving and isEntitled beside their peers](results.svg)

## Receiving

${connections} connections, one and the same body, ${receiving.length} rounds of ${secondsPerRound} s for each server, \
each in its own process and under load alone, in turns. Ratios are taken within a round; **median** (min–max). \
Absolute figures depend on the machine and on what else it does; the ratios are what to look at.

| marketplace-webhooks compared with | requests/s, more is better | p50 latency, less is better | p99 latency, less is better | CPU per request, less is better |
|---|---|---|---|---|
${(['express', 'octokit'] as const)
  .map((peer) => {
    const ratio = (what: keyof Measured) => times(ratioOf(results, 'marketplace', peer, what))
    return row(
      SERVER_NAMES[peer],
      ratio('requestsPerSecond'),
      ratio('p50Ms'),
      ratio('p99Ms'),
      ratio('cpuMicrosPerRequest'),
    )
  })
  .join('\n')}

| Server | requests/s | p50 ms | p99 ms | CPU µs per request |
|---|---|---|---|---|
${(Object.keys(SERVER_NAMES) as Server[])
  .map((server) => {
    const figures = (what: keyof Measured, digits: number) =>
      figure(spreadOf(receiving.map((round) => round[server][what])), digits)
    return row(
      SERVER_NAMES[server],
      figures('requestsPerSecond', 0),
      figures('p50Ms', 1),
      figures('p99Ms', 1),
      figures('cpuMicrosPerRequest', 0),
    )
  })
  .join('\n')}

After each round marketplace-webhooks had ended the last journal entry ${figure(spreadOf(drainedAfterMs), 0)} ms later.

## isEntitled, warm

Beside a bare awaited \`lru-cache\` get of the same 1,000 keys, ${entitlement.length} rounds in turns in one process.

| | ns per call | ratio |
|---|---|---|
${row('`await marketplace.isEntitled(business_uid)`', figure(spreadOf(entitlement.map((round) => round.isEntitled)), 0), times(entitlementRatio(results)))}
${row('`await cache.get(business_uid)`', figure(spreadOf(entitlement.map((round) => round.bareGet)), 0), '1')}
`
}

function row(...cells: string[]): string {
  return `| ${cells.join(' | ')} |`
}

function figure({ median, min, max }: Spread, digits: number): string {
  return `**${median.toFixed(digits)}** (${min.toFixed(digits)}–${max.toFixed(digits)})`
}

function times({ median, min, max }: Spread): string {
  return `**${median.toFixed(2)} ×** (${min.toFixed(2)}–${max.toFixed(2)})`
}
