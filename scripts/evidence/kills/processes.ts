import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** What a process of `server.mjs` is given when it begins. */
export interface ServerSettings {
  app: { clientId: string; clientSecret: string; purchasableUid: string }
  platform: { baseUrl: string; authUrl: string }
  deliverySecret: string
  store: string
  leaseMs: number
  /** How long a handler takes at most. */
  handlersTakeMs: number
}

/** A call of a handler, as the process reports it before it returns. */
export interface Handled {
  id: string
  subscription_uid?: string
  to?: string
}

/** An entry of the journal. */
export interface Entry {
  id: string
  kind: string
  business_uid: string | null
  status: string
  error: string | null
}

/** Starts processes on one database, one after the other. Each loads while the one before it works. */
export function createServers(settings: ServerSettings, onHandled: (call: Handled) => void) {
  let next = load()

  function load() {
    const child = spawn(process.execPath, [join(__dirname, 'server.mjs')], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { ...process.env, NODE_COMPILE_CACHE: join(__dirname, '../../../reports/compile-cache') },
    })
    // Each question waits for its answer with a listener of its own.
    child.setMaxListeners(0)
    let words = ''
    child.stderr?.on('data', (chunk) => {
      words += chunk
    })
    const loaded = reported(child, 'loaded')
    loaded.catch(() => {})
    return { child, loaded, words: () => words }
  }

  return {
    /** The next process, which has its settings. */
    async begin() {
      const { child, loaded, words } = next
      next = load()
      await loaded
      const listening = reported(child, 'listening').then(({ port }) => Number(port))
      // A killed process may never listen.
      listening.catch(() => {})
      const ended = once(child, 'close')
      let isKilled = false
      let questions = 0
      child.on('message', (message: Handled & { is: string }) => {
        if (message.is === 'handled') onHandled(message)
      })
      child.send(settings)

      /** Rejects if the process ends before its answer. */
      async function ask<T>(business?: string): Promise<T> {
        const question = ++questions
        const answered = reported(child, 'answer', (message) => message.question === question)
        child.send({ question, business }, () => {})
        return (await answered).answer as T
      }

      return {
        listening,
        /** Whether the business may use the app; null if that is not known. */
        isEntitled: (business: string) => ask<boolean | null>(business),
        entries: () => ask<Entry[]>(),
        /** Resolves when the process has ended and all that it reported has arrived. */
        async kill() {
          isKilled = true
          child.kill('SIGKILL')
          await ended
        },
        /** The words of a process that ended by itself; undefined if it lives or was killed. */
        diedOf: () =>
          isKilled || (child.exitCode === null && child.signalCode === null)
            ? undefined
            : words().trim() || `exit code ${child.exitCode ?? child.signalCode}`,
      }
    },
    /** Ends the process that was loaded in advance. */
    async close() {
      next.child.kill('SIGKILL')
      await once(next.child, 'close')
    },
  }
}

export type ServerProcess = Awaited<ReturnType<ReturnType<typeof createServers>['begin']>>

type Message = Record<string, unknown>

/** The next report of this kind; rejects if the process ends before it. */
function reported(
  child: ChildProcess,
  what: string,
  isMeant = (_message: Message) => true,
): Promise<Message> {
  return new Promise((resolve, reject) => {
    function onMessage(message: Message) {
      if (message.is !== what || !isMeant(message)) return
      child.off('message', onMessage).off('close', onClose)
      resolve(message)
    }
    function onClose() {
      child.off('message', onMessage)
      reject(new Error(`the process ended before it reported: ${what}`))
    }
    child.on('message', onMessage).once('close', onClose)
  })
}
