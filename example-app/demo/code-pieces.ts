import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ACTIONS, type ActionName } from './business-actions.js'

/** A piece of this example's code, cut from the file that runs. */
export interface Code {
  /** `app`: code that a seller writes. `demo`: code around it, which plays the platform. */
  of: 'app' | 'demo'
  file: string
  text: string
}

/** Where a piece begins: a line of a file, by its first words. */
type Place = readonly [of: Code['of'], file: string, beginning: string]

const ROUTER: Place = ['app', 'app.ts', "app.use('/webhooks/marketplace'"]
const ON_CHANGE: Place = ['app', 'app.ts', 'marketplace.onPurchaseChange(']
const KILL: Place = ['demo', 'demo/app-process.ts', 'function end(']

/** The code behind each button, by the name of the button. */
export const PLACES = {
  ...actionsFrom('demo/business-actions.ts'),
  install: [
    ['demo', 'demo/business-actions.ts', 'install: {'],
    ['app', 'app.ts', "marketplace.on('application/installed'"],
  ],
  openReport: [
    ['app', 'app.ts', 'const paid = marketplace.requireEntitlement('],
    ['app', 'app.ts', "app.get('/reports'"],
  ],
  checkAgain: [['app', 'app.ts', "app.post('/access/refresh'"]],
  cutOff: [['demo', 'demo/outages.ts', 'outage = simulator.faults.add(']],
  bringBack: [['demo', 'demo/outages.ts', 'outage.remove(']],
  slowDown: [['demo', 'demo/outages.ts', 'slowness = simulator.faults.add(']],
  speedUp: [['demo', 'demo/outages.ts', 'slowness.remove(']],
  killApp: [['demo', 'demo/app-process.ts', "kill: () => end('SIGKILL')"], KILL],
  startApp: [
    ['demo', 'demo/app-process.ts', 'const started = fork('],
    ['app', 'server.ts', 'const { app, marketplace } = createReportsApp('],
    ['app', 'server.ts', 'await marketplace.start('],
  ],
  buyAndKill: [['demo', 'demo/outages.ts', 'async killAfterTheAcknowledgement('], ROUTER],
  missAndPay: [
    ['demo', 'demo/stories.ts', 'function missAndPay('],
    ['demo', 'demo/business-actions.ts', 'failPayment: {'],
    ['demo', 'demo/business-actions.ts', 'confirmPayment: {'],
  ],
} as const satisfies Record<string, readonly Place[]>

export type ButtonName = keyof typeof PLACES

/** Reads the code behind each button. Throws if a file does not contain the first line of a piece. */
export async function readCode(here: string): Promise<Record<ButtonName, Code[]>> {
  const rows = Object.entries(PLACES).map(async ([name, places]) => [
    name,
    await Promise.all(
      places.map(async ([of, file, beginning]) => {
        const source = await readFile(join(here, file), 'utf8')
        return { of, file, text: cut(source, beginning) }
      }),
    ),
  ])
  return Object.fromEntries(await Promise.all(rows))
}

/** The only line that begins with `beginning`, the indented lines below it, and the closing line. */
export function cut(source: string, beginning: string): string {
  const lines = source.split('\n')
  const starts = lines.flatMap((line, i) => (line.trimStart().startsWith(beginning) ? [i] : []))
  const [start] = starts
  if (start === undefined || starts.length > 1)
    throw new Error(`expected one line that begins with ${beginning}, found ${starts.length}`)
  const indent = indentOf(lines[start])
  const below = lines.slice(start + 1)
  const deeper = below.findIndex((line) => line.trim() !== '' && indentOf(line) <= indent)
  const length = deeper < 0 ? below.length : deeper
  const isClosed = length > 0 && /^[)\]}]/.test(below[length]?.trim() ?? '')
  const piece = lines.slice(start, start + 1 + length + (isClosed ? 1 : 0))
  return piece
    .map((line) => line.slice(indent))
    .join('\n')
    .trimEnd()
}

function indentOf(line = ''): number {
  return line.length - line.trimStart().length
}

/** The code of an action: its row of the table, the router that gets the delivery, and the handler of the change. */
function actionsFrom(file: string) {
  const names = Object.keys(ACTIONS) as ActionName[]
  const rows = names.map((name) => [name, [['demo', file, `${name}: {`], ROUTER, ON_CHANGE]])
  return Object.fromEntries(rows) as Record<ActionName, readonly Place[]>
}
