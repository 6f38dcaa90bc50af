import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Simulator } from '../../../lib/testing/index.js'
import { onCleanUp } from '../clean-up.js'
import { EVAL_TYPESCRIPT } from '../processes/processes.js'
import { DELIVERY_SECRET } from '../settings.js'
import type { ChildSettings } from './receiver-child.js'

export interface ReceiverProcess {
  /** Sends the settings; resolves when the process listens. */
  begin(): Promise<void>
  /** The address for deliveries. */
  target(): string
  get<T>(path: string): Promise<T>
  signal(name: NodeJS.Signals): void
  /** The finishes that it reported, if the settings request reports. */
  finishes: readonly Finish[]
  /** How the process ended. */
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; stderr: string }>
}

export interface Finish {
  what: 'read' | 'lane' | 'entry'
  id: string
  /** Whether the lease was still held by this process. */
  isHeld: boolean
}

const NODE = [...EVAL_TYPESCRIPT, `require(${JSON.stringify(join(__dirname, 'receiver-child.ts'))})`]

/** Starts to load a receiver at once. `under` is a command in front of it, such as strace and its options. */
export function loadReceiver(settings: ChildSettings, under: readonly string[] = []): ReceiverProcess {
  const [command, ...rest] = [...under, process.execPath, ...NODE] as [string, ...string[]]
  const child = spawn(command, rest, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], cwd: process.cwd() })
  const finishes: Finish[] = []
  let stderr = ''
  let port = 0
  // Under strace, the receiver is a child of the child process.
  let pid = 0
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  child.on('message', (message: Finish & { is: string }) => {
    if (message.is === 'finished') finishes.push(message)
  })
  const ended = new Promise<Awaited<ReceiverProcess['ended']>>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stderr }))
  })
  const loaded = reported(child, 'loaded')
  loaded.then(
    (message) => {
      pid = Number(message.pid)
    },
    () => {},
  )

  /** Sends a signal; does nothing if the process has already ended. */
  function signal(name: NodeJS.Signals) {
    if (child.exitCode === null && child.signalCode === null) process.kill(pid || Number(child.pid), name)
  }

  onCleanUp(async () => {
    await loaded.catch(() => {})
    signal('SIGKILL')
    await ended
  })

  return {
    async begin() {
      await loaded
      const listening = reported(child, 'listening')
      child.send(settings)
      port = Number((await listening).port)
    },
    target: () => `http://127.0.0.1:${port}/hooks/${DELIVERY_SECRET}`,
    async get<T>(path: string) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`)
      return (await response.json()) as T
    },
    signal,
    finishes,
    ended,
  }
}

function reported(child: ChildProcess, what: string): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: Record<string, unknown>) => {
      if (message.is === what) resolve(message)
    })
    child.once('close', (code, signal) =>
      reject(new Error(`the process ended before it was ${what}: ${signal ?? code}`)),
    )
  })
}

/** A short lease makes a takeover quick. */
export const LEASE_MS = 1_000

/** The settings of a receiver with a worker, for this platform and store. */
export function childSettings(
  { baseUrl, authUrl }: Pick<Simulator, 'baseUrl' | 'authUrl'>,
  store: string,
  more: Partial<ChildSettings>,
): ChildSettings {
  return {
    store,
    baseUrl,
    authUrl,
    works: true,
    handler: 'returns',
    closeTimeoutMs: 500,
    leaseMs: LEASE_MS,
    ...more,
  }
}
