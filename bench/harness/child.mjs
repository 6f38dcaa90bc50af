import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { BENCH, pinned } from './machine.mjs'

const children = new Set()

/**
 * Starts `bench/<file>` in a process of its own, like an app: without a loader, in production mode. Resolves when it is
 * ready; `ready` contains its first message. `settings` is any JSON; see `servers/serve.mjs`.
 */
export async function startChild(file, settings, { node = process.execPath, cores, flags = [] } = {}) {
  const [program, args] = pinned(cores, node, [
    '--disable-warning=ExperimentalWarning',
    ...flags,
    join(BENCH, file),
    JSON.stringify(settings),
  ])
  const process_ = spawn(program, args, {
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production', NODE_OPTIONS: '', DEBUG: '' },
  })
  children.add(process_)
  let errors = ''
  process_.stderr.on('data', (text) => {
    errors = `${errors}${text}`.slice(-4_000)
  })
  const ended = new Promise((resolve) => process_.once('exit', resolve))
  const waiting = []
  process_.on('message', ({ error, answer }) => {
    const { resolve, reject } = waiting.shift() ?? {}
    if (error) reject?.(new Error(`${file}: ${error}`))
    else resolve?.(answer)
  })
  ended.then((code) => {
    children.delete(process_)
    for (const { reject } of waiting.splice(0)) reject(new Error(`${file} has ended (${code}): ${errors}`))
  })
  const next = () => new Promise((resolve, reject) => waiting.push({ resolve, reject }))

  const child = {
    file,
    ready: undefined,
    /** Answers arrive in the order of the questions. */
    ask(question, ...args) {
      const answer = next()
      process_.send({ question, args })
      return answer
    },
    /**
     * Waits until the process is nearly idle: background work of its start, such as the check of a large file, has
     * ended.
     */
    async calm(timeoutMs = 120_000) {
      const deadline = Date.now() + timeoutMs
      let before = await child.ask('cpu')
      for (let calm = 0; calm < 3 && Date.now() < deadline; ) {
        await new Promise((resolve) => setTimeout(resolve, 100))
        const now = await child.ask('cpu')
        calm = now - before < 15_000 ? calm + 1 : 0
        before = now
      }
    },
    /** Suspends the process while another one is measured. */
    freeze: () => process_.kill('SIGSTOP'),
    thaw: () => process_.kill('SIGCONT'),
    async stop() {
      process_.kill('SIGCONT')
      if (process_.connected) process_.disconnect()
      const timer = setTimeout(() => process_.kill('SIGKILL'), 15_000)
      await ended
      clearTimeout(timer)
    },
    kill: () => process_.kill('SIGKILL'),
  }
  try {
    child.ready = await next()
  } catch (error) {
    process_.kill('SIGKILL')
    throw error
  }
  return child
}

/** Ends the processes of an interrupted run. */
export function killChildren() {
  for (const child of children) child.kill('SIGKILL')
}
