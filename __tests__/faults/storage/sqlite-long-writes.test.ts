import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { temporaryFolder } from '../../support/clean-up.js'
import { child, DRIVERS } from '../../support/engines/sqlite-drivers.js'
import { canTrace } from '../../support/machine/system-calls.js'

describe.each(DRIVERS)('C29 writes without a pause (%s)', (driver) => {
  const whenTraced = canTrace() ? it : it.skip
  whenTraced(
    'leave the WAL short, and the thread of the event loop never waits for the disk',
    async () => {
      const trace = join(temporaryFolder(), 'trace')
      const [result] = await child('write much', driver, [
        ...['strace', '-f', '-qq', '--seccomp-bpf', '-y', '-o', trace, '-e', 'trace=fsync,fdatasync,write'],
      ])
      const { longestWal, database } = result as { longestWal: number; database: number }
      expect(database).toBeGreaterThan(30 * 1024 * 1024)
      expect(longestWal).toBeLessThan(32 * 1024 * 1024)
      const lines = readFileSync(trace, 'utf8').split('\n')
      const marks = lines.flatMap((line, at) => (line.includes('"MARK"') ? [at] : []))
      const [main] = (lines[marks[0] as number] as string).split(/\s/)
      const syncs = lines.slice(...marks).filter((line) => /^\d+ +f(data)?sync/.test(line))
      expect(syncs.length).toBeGreaterThan(20)
      expect(syncs.filter((line) => line.startsWith(`${main} `))).toEqual([])
    },
    60_000,
  )
})
