import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { SECOND, systemClock } from '../../lib/base/clock.js'
import { createSqliteEngine } from '../../lib/sqlite/engine.js'
import { BEGIN_WAL, createCheckpoints } from '../../lib/sqlite/file/checkpoints.js'
import { NoThread } from '../../lib/sqlite/file/thread.js'
import { createMutex } from '../../lib/sqlite/mutex.js'
import { sql } from '../../lib/store/sql/sql.js'
import { onCleanUp, temporaryFolder } from '../support/clean-up.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { gate, until } from '../support/until.js'

const PASSIVE = 'pragma wal_checkpoint(passive)'

describe('the checkpoints of a SQLite store', () => {
  it('restart the WAL themselves, before the next commit', async () => {
    const path = join(temporaryFolder(), 'm.db')
    const engine = createSqliteEngine({ path, clock: systemClock, driver: 'libsql' })
    onCleanUp(() => engine.close())
    await engine.open()
    await engine.write((trx) => sql`create table filled (bytes)`.execute(trx))
    const salts = () => readFileSync(`${path}-wal`).toString('hex', 16, 24)
    const before = salts()
    for (let commits = 1; commits < 16; commits++)
      await engine.write((trx) => sql`insert into filled values (zeroblob(600000))`.execute(trx))
    await until('the WAL has restarted', () => salts() !== before)
  })

  it('begin when the WAL has 2,000 pages; every 16th commit checks that', async () => {
    const { commit, clock, looks, statements, grow } = checkpoints()
    commit(31)
    expect(looks).toEqual([2_000])
    await clock.rest()
    expect(statements).toEqual([])
    grow()
    commit(1)
    await clock.rest()
    expect(statements).not.toEqual([])
  })

  it('first copy the WAL beside the writers, then copy the rest and restart it in a turn without writers', async () => {
    const { begin, clock, statements, mutex } = checkpoints()
    const unlock = await mutex.lock()
    await begin()
    expect(statements).toEqual([PASSIVE])
    unlock()
    await clock.rest()
    expect(statements).toEqual([PASSIVE, PASSIVE, BEGIN_WAL])
    ;(await mutex.lock())()
  })

  it('run only the second step if others must not write during a checkpoint', async () => {
    const { begin, clock, statements, mutex } = checkpoints({ mayOverlap: false })
    const unlock = await mutex.lock()
    await begin()
    expect(statements).toEqual([])
    unlock()
    await clock.rest()
    expect(statements).toEqual([PASSIVE, BEGIN_WAL])
  })

  it('hold the turn until the restart has ended', async () => {
    const restart = gate()
    const { begin, clock, mutex } = checkpoints({
      run: (statement) => (statement === BEGIN_WAL ? restart.opened : undefined),
    })
    await begin()
    let isWriting = false
    const writing = mutex.lock().then((unlock) => {
      isWriting = true
      unlock()
    })
    await clock.rest()
    expect(isWriting).toBe(false)
    restart.open()
    await writing
  })

  it('never run two at once, and can run again afterwards', async () => {
    const first = gate()
    const { begin, commit, clock, statements, grow } = checkpoints({ run: () => first.opened })
    grow()
    commit(64)
    await clock.rest()
    expect(statements).toEqual([PASSIVE])
    first.open()
    await clock.rest()
    await begin()
    expect(statements).toHaveLength(6)
  })

  it('pass the connection on when one fails, report it, and pause for five seconds', async () => {
    let isFull = true
    const { begin, clock, statements, mutex, noThread, failures } = checkpoints({
      mayOverlap: false,
      async run() {
        if (isFull) throw new Error('the disk is full')
      },
    })
    await begin()
    expect(statements).toEqual([PASSIVE])
    ;(await mutex.lock())()
    isFull = false
    await clock.advance(5 * SECOND - 1)
    await begin()
    expect(statements).toEqual([PASSIVE])
    await clock.advance(1)
    await begin()
    expect(statements).toEqual([PASSIVE, PASSIVE, BEGIN_WAL])
    expect([noThread(), failures]).toEqual([0, [new Error('the disk is full')]])
  })

  it('are left to SQLite when no thread can run', async () => {
    const { begin, noThread } = checkpoints({
      run: () => Promise.reject(new NoThread('no thread')),
    })
    await begin()
    expect(noThread()).toBe(1)
  })
})

/** `grow` makes the WAL long enough for a checkpoint, which `begin` also begins. The statements for the thread are noted. */
function checkpoints({
  mayOverlap = true,
  run = () => undefined,
}: {
  mayOverlap?: boolean
  run?(statement: string): Promise<void> | undefined
} = {}) {
  const clock = createVirtualClock({ isBusy: () => false })
  const mutex = createMutex()
  const looks: number[] = []
  const statements: string[] = []
  let isLong = false
  const failures: unknown[] = []
  let withoutThread = 0
  const { afterCommit } = createCheckpoints({
    wal: { reaches: (pages) => looks.push(pages) > 0 && isLong },
    thread: {
      async run(statement) {
        statements.push(statement)
        await run(statement)
        return []
      },
      end: async () => {},
    },
    mutex,
    mayOverlap,
    onNoThread: () => void withoutThread++,
    onFailure: (error) => void failures.push(error),
    clock: clock.forProcess(),
  })
  function commit(times: number) {
    for (let i = 0; i < times; i++) afterCommit()
  }
  return {
    clock,
    mutex,
    looks,
    statements,
    failures,
    noThread: () => withoutThread,
    grow() {
      isLong = true
    },
    commit,
    /** Lets a checkpoint of a long WAL begin. */
    async begin() {
      isLong = true
      commit(16)
      await clock.rest()
    },
  }
}
