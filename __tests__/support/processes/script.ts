import { join } from 'node:path'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../settings.js'
import { EVAL_TYPESCRIPT } from './processes.js'
import { type RunningProcess, startProcess } from './running-process.js'

export interface Script extends Pick<RunningProcess, 'prints' | 'isAlive' | 'signal'> {
  /** The output so far. */
  output(): string
  /** The exit code, or the signal that ended the process. */
  ended: Promise<number | NodeJS.Signals | null>
}

/**
 * Runs a script as a process of its own. The script has `createMarketplace`, `copyStore`, `createDebug`, `otel`, `settings` (the
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
    const { copyStore, createMarketplace, postgresStore } = require(${JSON.stringify(lib)})
    const createDebug = require('debug')
    const otel = require('@opentelemetry/api')
    const settings = ${JSON.stringify(settings)}
    const print = (...given) => console.log(...given)
    ;(async () => { ${code} })().catch((error) => { print('threw', error.code, error.message) })`
  const running = startProcess(process.execPath, [...EVAL_TYPESCRIPT, source])
  return {
    ...running,
    output: () => running.stdout() + running.stderr(),
    ended: running.ended.then(({ code }) => code),
  }
}
