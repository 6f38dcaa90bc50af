import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { onCleanUp, temporaryFolder } from '../clean-up.js'
import { startProxy, type TcpProxy } from '../engines/tcp-proxy.js'
import { EVAL_TYPESCRIPT } from '../processes/processes.js'
import { DELIVERY_SECRET } from '../settings.js'
import type { DoorReply } from '../world/door.js'
import { now, type Window } from './clock.js'
import type { CallLine, InstanceSettings } from './instance-child.js'

/** One process of an instance, from its start to its end. */
export interface Life extends Window {
  instance: number
  number: number
  frozen: Window[]
  /** What the process wrote to stderr. */
  stderr: string
  /** Whether the process ended without being killed. */
  endedByItself: boolean
  calls(): CallLine[]
}

export interface Instance {
  number: number
  /** The address at which the process listens; undefined while no process runs. */
  url: string | undefined
  isFrozen: boolean
  /** The instance's own connection to the database. */
  wire: TcpProxy
  kill(): Promise<void>
  /** Starts a new process; resolves when it listens. */
  begin(): Promise<void>
  freeze(): void
  thaw(): void
  /** Makes one delivery; the status is 0 when nobody answers. */
  deliver(body: string): Promise<DoorReply>
  /** Asks for JSON, which may take long while the process is frozen; undefined without an answer. */
  get<T>(path: string): Promise<T | undefined>
}

/** A delivery that an instance acknowledged. */
export interface Acknowledged {
  id: string
  envelope: { data: Record<string, string> }
  instance: number
  /** When the acknowledged request was sent, and when its reply came. */
  from: number
  to: number
}

/**
 * Starts several processes of one app. Each has its own connection to the same database. One more process is always
 * loaded as the next one.
 */
export async function startInstances(options: {
  count: number
  databasePort: number
  /** The direct address of the database. */
  store: string
  seed: number
  settings: Omit<InstanceSettings, 'store' | 'callsFile' | 'seed'>
}) {
  const { count, databasePort, store, seed, settings } = options
  const folder = temporaryFolder()
  const lives: Life[] = []
  const acknowledged: Acknowledged[] = []
  let tries = 0
  let spare = loadProcess()

  async function createInstance(number: number): Promise<Instance> {
    const wire = await startProxy({ to: databasePort })
    let child: ChildProcess | undefined
    let life: Life | undefined
    let ended: Promise<unknown> = Promise.resolve()

    const instance: Instance = {
      number,
      url: undefined,
      isFrozen: false,
      wire,

      async begin() {
        const process = spare
        spare = loadProcess()
        await reported(process, 'loaded')
        const callsFile = join(folder, `calls-${lives.length}`)
        const own: Life = {
          instance: number,
          number: lives.length,
          from: now(),
          to: Number.POSITIVE_INFINITY,
          frozen: [],
          stderr: '',
          endedByItself: false,
          calls: () => readCalls(callsFile),
        }
        lives.push(own)
        child = process
        life = own
        process.stderr?.on('data', (chunk) => {
          own.stderr += chunk
        })
        ended = new Promise((resolve) => process.once('close', resolve)).then(() => {
          own.to = now()
          own.endedByItself = child !== undefined
          instance.url = undefined
        })
        const listening = reported(process, 'listening')
        process.send({
          ...settings,
          store: wire.through(store),
          callsFile,
          seed: seed + own.number,
        } satisfies InstanceSettings)
        instance.url = `http://127.0.0.1:${(await listening).port}`
      },

      async kill() {
        const killed = child
        child = undefined
        killed?.kill('SIGKILL')
        await ended
      },

      freeze() {
        life?.frozen.push({ from: now(), to: Number.POSITIVE_INFINITY })
        instance.isFrozen = true
        child?.kill('SIGSTOP')
      },

      thaw() {
        child?.kill('SIGCONT')
        instance.isFrozen = false
        const last = life?.frozen.at(-1)
        if (last) last.to = now()
      },

      async deliver(body) {
        if (!instance.url) return NOBODY
        tries++
        const from = now()
        const headers = { 'content-type': 'application/json' }
        const request = { method: 'POST', headers, body, signal: AbortSignal.timeout(5_000) }
        try {
          const response = await fetch(`${instance.url}/hooks/${DELIVERY_SECRET}`, request)
          const reply = { status: response.status, text: await response.text() }
          if (reply.status !== 200) return reply
          const { id, ids = [id] } = JSON.parse(reply.text)
          for (const [at, envelope] of [JSON.parse(body)].flat().entries()) {
            acknowledged.push({ id: ids[at], envelope, instance: number, from, to: now() })
          }
          return reply
        } catch {
          return NOBODY
        }
      },

      async get<T>(path: string) {
        try {
          const response = await fetch(`${instance.url}/${path}`, { signal: AbortSignal.timeout(20_000) })
          return (await response.json()) as T
        } catch {
          return undefined
        }
      },
    }
    onCleanUp(instance.kill)
    return instance
  }

  onCleanUp(() => spare.kill('SIGKILL'))
  const instances: Instance[] = []
  for (let number = 0; number < count; number++) {
    const instance = await createInstance(number)
    instances.push(instance)
    await instance.begin()
  }
  return {
    instances,
    lives: lives as readonly Life[],
    acknowledged: acknowledged as readonly Acknowledged[],
    tries: () => tries,
  }
}

const NOBODY: DoorReply = { status: 0, text: '' }
const NODE = [...EVAL_TYPESCRIPT, `require(${JSON.stringify(join(__dirname, 'instance-child.ts'))})`]

function loadProcess(): ChildProcess {
  const child = spawn(process.execPath, NODE, {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    cwd: process.cwd(),
  })
  child.on('message', (message: Message) => received.set(child, [...(received.get(child) ?? []), message]))
  return child
}

type Message = { is: string; port?: number }
/** The messages of each process so far. A spare process sends some long before they are needed. */
const received = new WeakMap<ChildProcess, Message[]>()

function reported(child: ChildProcess, what: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const message = received.get(child)?.find(({ is }) => is === what)
      if (message) resolve(message)
    }
    child.on('message', look)
    child.once('close', (code, signal) =>
      reject(new Error(`the process ended before it was ${what}: ${signal ?? code}`)),
    )
    look()
  })
}

function readCalls(file: string): CallLine[] {
  let text = ''
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    // The process was killed before its first line.
  }
  // The last line is ignored if a kill has cut it off.
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as CallLine)
}
