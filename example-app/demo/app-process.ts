import { type ChildProcess, fork } from 'node:child_process'
import type { Activity } from '../app.js'

type Message = Activity | { kind: 'ready'; port: number }

export interface AppProcess {
  /** Resolves when the app accepts deliveries, always on the port of the first start, where the platform delivers. */
  start(): Promise<void>
  /** Sends SIGKILL: no code of the app runs any more. Resolves when the process has ended. */
  kill(): Promise<void>
  /** Sends SIGTERM: the app closes by itself. Resolves when the process has ended. */
  stop(): Promise<void>
  /** `starting`: its process runs, and does not accept deliveries yet. */
  state(): 'running' | 'starting' | 'stopped'
  /** The address of its console; null before the first start. */
  consoleUrl(): string | null
  /** When the running process was started; Infinity while none runs. */
  startedAt(): number
  /** A request made by a signed-in business. Rejects when the app is not running. */
  request(
    method: 'GET' | 'POST',
    path: string,
    businessUid: string,
  ): Promise<{ status: number; body: unknown }>
}

/** Runs the app in a process that can be killed and started again. */
export function createAppProcess(options: {
  script: string
  env: Record<string, string>
  onActivity(activity: Activity): void
  /** Called when the process ends by itself. */
  onDied(why: string): void
}): AppProcess {
  const { script, env, onActivity, onDied } = options
  let child: ChildProcess | undefined
  let port = 0
  let startedAt = Number.POSITIVE_INFINITY
  let isReady = false
  let starting: Promise<void> | undefined

  function start(): Promise<void> {
    starting ??= begin()
    return starting
  }

  function begin(): Promise<void> {
    // The app reports by messages, so its standard output is not shown.
    const started = fork(script, {
      env: { ...process.env, ...env, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    child = started
    startedAt = Date.now()
    return new Promise((resolve, reject) => {
      started.on('message', (message: Message) => {
        if (message.kind !== 'ready') return onActivity(message)
        port = message.port
        isReady = true
        resolve()
      })
      started.once('exit', (code, signal) => {
        const why = `the app ended with ${signal ?? `code ${code}`}`
        if (child === started) {
          forget()
          onDied(why)
        }
        reject(new Error(why))
      })
    })
  }

  function end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const ended = child
    forget()
    if (!ended) return Promise.resolve()
    return new Promise((resolve) => {
      ended.once('exit', () => resolve())
      ended.kill(signal)
    })
  }

  function forget() {
    child = undefined
    starting = undefined
    startedAt = Number.POSITIVE_INFINITY
    isReady = false
  }

  return {
    start,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    state: () => (isReady ? 'running' : child ? 'starting' : 'stopped'),
    consoleUrl: () => (port === 0 ? null : `http://127.0.0.1:${port}/ops`),
    startedAt: () => startedAt,
    async request(method, path, businessUid) {
      if (!isReady) throw new Error('the app is not running')
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { 'x-demo-business': businessUid, connection: 'close' },
        signal: AbortSignal.timeout(10_000),
      })
      return { status: response.status, body: await response.json() }
    },
  }
}
