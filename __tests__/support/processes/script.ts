import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { onCleanUp } from '../clean-up.js'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../settings.js'
import { until } from '../until.js'
import { EVAL_TYPESCRIPT } from './processes.js'

export interface Script {
  /** The output so far. */
  output(): string
  /** Resolves when it has printed this text. */
  prints(text: string, withinMs?: number): Promise<void>
  isAlive(): boolean
  signal(name: NodeJS.Signals): void
  /** The exit code, or the signal that ended the process. */
  ended: Promise<number | NodeJS.Signals | null>
}

/**
 * Runs a script as a process of its own. The script has `createMarketplace`, `createDebug`, `otel`, `settings` (the
 * options for this address) and `print`, and may use top-level `await`.
 */
export function runScript(
  options: { store: string; platform?: { baseUrl: string; authUrl: string } },
  code: string,
): Script {
  const { store, platform = { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' } } = options
  const { baseUrl, authUrl } = platform
  const settings = {
    app: { ...CLIENT, purchasableUid: OUR_ITEM },
    platform: { baseUrl, authUrl },
    deliverySecrets: DELIVERY_SECRET,
    store,
    closeTimeoutMs: 500,
  }
  const lib = join(__dirname, '..', '..', '..', 'lib', 'index.ts')
  const source = `
    const { createMarketplace, postgresStore } = require(${JSON.stringify(lib)})
    const createDebug = require('debug')
    const otel = require('@opentelemetry/api')
    const settings = ${JSON.stringify(settings)}
    const print = (...given) => console.log(...given)
    ;(async () => { ${code} })().catch((error) => { print('threw', error.code, error.message) })`
  const child = spawn(process.execPath, [...EVAL_TYPESCRIPT, source], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: process.cwd(),
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      text += chunk
    })
  }
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (exitCode, signal) => resolve(signal ?? exitCode))
  })
  const isAlive = () => child.exitCode === null && child.signalCode === null
  onCleanUp(async () => {
    if (isAlive()) child.kill('SIGKILL')
    await ended
  })

  return {
    output: () => text,
    async prints(wanted, withinMs = 40_000) {
      await until(`"${wanted}"`, () => text.includes(wanted) || !isAlive(), withinMs).catch((error) => {
        throw new Error(`${error.message}; printed: ${text}`)
      })
      if (!text.includes(wanted)) throw new Error(`it ended without "${wanted}": ${text}`)
    },
    isAlive,
    signal: (name) => void child.kill(name),
    ended,
  }
}
