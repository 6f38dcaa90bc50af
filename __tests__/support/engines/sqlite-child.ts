/**
 * A process with only a SQLite store, for faults of a whole process: limits of the system, and failing system calls.
 * Arguments: the task, the path, the driver. It answers with lines of JSON.
 */
import { execFileSync } from 'node:child_process'
import { openSync, readdirSync, readlinkSync, statSync, writeSync } from 'node:fs'
import { systemClock } from '../../../lib/base/clock.js'
import type { SqliteDriverName } from '../../../lib/sqlite/drivers.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import { eventOf } from '../events.js'

const [, , task, path, driver] = process.argv as [
  string,
  string,
  keyof typeof TASKS,
  string,
  SqliteDriverName,
]

const TASKS = {
  /** Opens the store again until it succeeds. Reports the error of each failure, and the resources that stayed open. */
  async 'open again'() {
    const store = open()
    for (let tries = 0; tries < 40; tries++) {
      try {
        await store.open()
        break
      } catch (error) {
        print({ failed: (error as { code?: unknown }).code, message: String(error), left: openFiles() })
      }
    }
    // A sync that fails after opening belongs to another test.
    for (let tries = 0; tries < 8; tries++) {
      const accepted = store.accept([eventOf('s1')])
      if (await accepted.then(...SUCCEEDED)) return print({ opened: true })
    }
  },

  async 'file-size limit'() {
    const store = open()
    limitFiles(2_048)
    await refused(store.open())
    print({ left: openFiles() })
    limitFiles('unlimited')
    await store.open()
    await store.accept([eventOf('s1')])
    limitFiles(statSync(`${path}-wal`).size + 2_000)
    for (const uid of ['s2', 's3']) await refused(store.accept([{ ...eventOf(uid), payload: BIG }]))
    print({ listed: (await store.listEntries({})).length })
    limitFiles('unlimited')
    await store.accept([eventOf('s4')])
    print({ listed: (await store.listEntries({})).length })
    await store.close()
  },

  /** Writes about 40 MiB, between two marks in the trace. */
  async 'write much'() {
    const store = open()
    await store.open()
    let longestWal = 0
    writeSync(2, 'MARK')
    for (let i = 0; i < 120; i++) {
      const events = Array.from({ length: 60 }, (_, n) => ({ ...eventOf(`s${i}-${n}`), payload: BIG }))
      await Promise.all(events.map((event) => store.accept([event])))
      longestWal = Math.max(longestWal, statSync(`${path}-wal`).size)
    }
    writeSync(2, 'MARK')
    print({ longestWal, database: statSync(path).size })
    await store.close()
  },

  /** Writes until a checkpoint has failed, and reports the health of the store until later writes work again. */
  async 'checkpoints fail'() {
    const store = open()
    // The first sync of each thread fails, also that of the opening.
    while (!(await store.open().then(...SUCCEEDED)));
    const problem = async () => (await store.problem?.()) ?? null
    let found: string | null = null
    for (let i = 0; found === null && i < 40; i++) {
      await store.accept([{ ...eventOf(`s${i}`), payload: JSON.stringify('x'.repeat(300_000)) }])
      // The 32nd commit begins a checkpoint. The next write would make the file sound, so it waits for the thread.
      for (
        const until = Date.now() + (i < 28 ? 0 : 3_000);
        found === null && Date.now() < until;
        found = await problem()
      )
        await new Promise((resolve) => setTimeout(resolve, 5))
    }
    print({ problem: found })
    while ((await problem()) !== null) await new Promise((resolve) => setTimeout(resolve, 50))
    await store.accept([eventOf('last')])
    print({ problem: await problem() })
    await store.close()
  },

  /** Writes while some syncs fail. Each event and action that was acknowledged has a line in the file `<path>.acks`. */
  async 'syncs fail'() {
    const store = open()
    while (!(await store.open().then(...SUCCEEDED)));
    const acks = openSync(`${path}.acks`, 'a')
    let id = 0
    const refusals: unknown[] = []
    const noted = (id: string, done: Promise<unknown>) =>
      done.then(
        () => void writeSync(acks, `${id}\n`),
        (error) => void refusals.push(error.code),
      )
    for (let round = 0; round < 8; round++) {
      const calls: Promise<void>[] = []
      for (let i = 0; i < 4; i++) {
        const [action, event] = [`action-${++id}`, `event-${id}`]
        calls.push(
          noted(action, store.recordAction({ id: action, name: 'a', businessUid: null, payload: '{}' })),
        )
        calls.push(noted(event, store.accept([{ ...eventOf(`s${id}`), id: event }])))
        // Some are committed while an earlier sync runs.
        await new Promise((resolve) => setImmediate(resolve))
      }
      await Promise.all(calls)
    }
    print({ refused: refusals.length, codes: [...new Set(refusals)] })
    process.kill(process.pid, 'SIGKILL')
  },

  /** Ends without closing the store, while the thread is idle. */
  async 'end with a thread'() {
    const store = open()
    await store.open()
    await store.backup(`${path}.backup`)
    print({ done: true })
  },
}

const SUCCEEDED = [() => true, () => false] as const
const BIG = JSON.stringify('x'.repeat(5_000))

const open = () => createSqlStore(createSqliteEngine({ path, driver, clock: systemClock }))

async function refused(promise: Promise<unknown>) {
  await promise.then(
    () => print({ failed: null }),
    (error) => print({ failed: error.code, message: error.message }),
  )
}

function limitFiles(bytes: number | 'unlimited') {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`])
}

function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap((file) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${file}`)
      // If a libsql connection has run a query, as migrations do, libsql closes it only when its statements are
      // garbage-collected.
      const isLate = driver === 'libsql' && target === path
      return target.startsWith(path) && !isLate ? [target] : []
    } catch {
      return []
    }
  })
}

function print(line: object) {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

TASKS[task]().catch((error) => {
  writeSync(2, String(error?.stack))
  process.exitCode = 1
})
