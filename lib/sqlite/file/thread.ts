import { Worker } from 'node:worker_threads'
import type { SqliteLibrary } from '../drivers.js'

/**
 * A thread with a connection of its own, for long work of SQLite: checks of large files, checkpoints and backups. The
 * event loop continues during it. The thread starts with its first job, does not keep the process alive, and ends with
 * `end()`.
 *
 * A library that must not share a file may still read it in the thread while others write; for a checkpoint the caller
 * prevents writes. See docs/decisions/sqlite-thread.md.
 */
export interface SqliteThread {
  /**
   * Runs a statement and returns its rows. Jobs run one after the other. Rejects with SQLite's error, or `NoThread`. An
   * idle job does not keep the process alive.
   */
  run(statement: string, options?: { isIdle: boolean }): Promise<unknown[]>
  end(): Promise<void>
}

/** The thread could not start, or could not load the library of this process. The caller has to do the job. */
export class NoThread extends Error {}

export function createSqliteThread(library: SqliteLibrary, path: string): SqliteThread {
  const waiting = new Map<number, { resolve(rows: unknown[]): void; reject(error: unknown): void }>()
  let worker: Worker | undefined
  let jobs = 0

  function start(): Worker {
    const { name, modules, natives } = library
    const started = new Worker(SCRIPT, {
      eval: true,
      // On Node 22 each thread that loads `node:sqlite` prints a warning. The one of the main thread is enough.
      execArgv: ['--disable-warning=ExperimentalWarning'],
      name: 'marketplace-webhooks SQLite',
      workerData: { name, modules, natives, path },
    })
    const fail = (error: unknown) => {
      if (worker === started) worker = undefined
      for (const job of waiting.values()) job.reject(new NoThread(String(error)))
      waiting.clear()
    }
    started.on('message', ({ job, rows, error, isAbsent }) => {
      const waiter = waiting.get(job)
      waiting.delete(job)
      if (waiting.size === 0) started.unref()
      if (rows) waiter?.resolve(rows)
      else waiter?.reject(Object.assign(isAbsent ? new NoThread(error.message) : new Error(), error))
    })
    started.on('error', fail)
    started.on('exit', () => fail('the thread has ended'))
    started.unref()
    return started
  }

  return {
    run: (statement, { isIdle } = { isIdle: false }) =>
      new Promise((resolve, reject) => {
        const job = ++jobs
        try {
          worker ??= start()
          waiting.set(job, { resolve, reject })
          if (!isIdle) worker.ref()
          worker.postMessage({ job, statement })
        } catch (error) {
          waiting.delete(job)
          reject(new NoThread(String(error)))
        }
      }),

    async end() {
      const ending = worker
      worker = undefined
      await ending?.terminate()
    },
  }
}

// The script of the thread is a text and not a file, so that it works from both builds and from inside a bundle. It loads
// only the library that this process has loaded, and checks that before it opens a file: a second copy would release the
// file locks of the first.
const SCRIPT = `
const { parentPort, workerData: { name, modules, natives, path } } = require('node:worker_threads')
let connection

function load() {
  if (name === 'node:sqlite') return require(name).DatabaseSync
  const reasons = []
  for (const file of modules) {
    try {
      const Database = require(file)
      new Database(':memory:').close()
      const loaded = Object.keys(require.cache).filter((each) => each.endsWith('.node'))
      if (loaded.length > 0 && loaded.every((each) => natives.includes(each))) return Database
      reasons.push('another copy of it is at ' + file)
    } catch (error) {
      reasons.push(error.message)
    }
  }
  throw Object.assign(new Error('cannot load ' + name + ': ' + (reasons.join('; ') || 'not found')), { isAbsent: true })
}

function connect() {
  const Database = load()
  const opened = new Database(path, { timeout: 100 })
  opened.exec('pragma wal_autocheckpoint = 0')
  opened.exec('pragma synchronous = normal')
  opened.exec('pragma trusted_schema = off')
  return opened
}

parentPort.on('message', ({ job, statement }) => {
  try {
    connection ??= connect()
    const rows = statement.startsWith('pragma') ? connection.prepare(statement).all() : (connection.exec(statement), [])
    parentPort.postMessage({ job, rows: rows.map((row) => ({ ...row })) })
  } catch (error) {
    const { message, code, errcode, rawCode, isAbsent } = error
    parentPort.postMessage({ job, error: { message, code, errcode, rawCode }, isAbsent })
  }
})`
