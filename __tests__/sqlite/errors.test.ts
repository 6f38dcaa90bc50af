import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { corrupt, reasonOf } from '../../lib/sqlite/errors.js'
import { temporaryFolder } from '../support/clean-up.js'

const AGAIN = 'writing continues by itself when there is room'

describe('why SQLite cannot use a file', () => {
  it.each([
    ['a full disk, as SQLite says it', { errcode: 13 }, 'FULL', `the disk is full; ${AGAIN}`],
    ['a full disk, as the system says it', { code: 'ENOSPC' }, '', `the disk is full; ${AGAIN}`],
    ['a quota', { code: 'EDQUOT' }, '', `the disk quota of this user is used up; ${AGAIN}`],
    [
      'a quota, which SQLite does not tell apart',
      { errcode: 778 },
      'IOERR',
      `the system refuses to write: a disk quota, a file-size limit, or an I/O error; ${AGAIN}`,
    ],
    ['a full disk at a write', { errcode: 778 }, 'FULL', `the disk is full; ${AGAIN}`],
    [
      'a broken disk',
      { code: 'EIO', message: 'read failed' },
      '',
      'the disk reports an I/O error (read failed)',
    ],
    [
      'a broken disk at a read',
      { errcode: 266, message: 'disk I/O error' },
      'IOERR',
      'the disk reports an I/O error (disk I/O error)',
    ],
    ['a disk that is read-only', { code: 'EROFS' }, '', 'the file, its folder or its disk is read-only'],
    ['a file that is read-only', {}, 'READONLY', 'the file, its folder or its disk is read-only'],
    ['another process', {}, 'BUSY', 'another process has been writing to it for over 5 s'],
    [
      'a file that is no file',
      { message: 'unable to open' },
      'CANTOPEN',
      'the file, or one beside it, cannot be opened (unable to open)',
    ],
    ['memory', {}, 'NOMEM', 'there is not enough memory'],
    ['anything else', new Error('odd'), 'MISUSE', undefined],
    ['nothing', null, '', undefined],
  ])('because of %s is said to an operator', (_what, error, code, reason) => {
    const thrown = error instanceof Error ? error : error && Object.assign(new Error(), error)
    expect(reasonOf(thrown, code, join(temporaryFolder(), 'm.db'))).toBe(reason)
  })

  it('because of a limit of this process is said with the limit', () => {
    const thrown = Object.assign(new Error('too large'), { code: 'EFBIG' })
    expect(reasonOf(thrown, '', join(temporaryFolder(), 'm.db'))).toMatch(
      /^the file-size limit of this process \((?:\d+|Infinity) bytes, see ulimit -f\) is reached; writing continues by itself/,
    )
  })

  it('because it is damaged says that it was left as it is, and what to do', () => {
    expect(corrupt('/data/m.db', new Error('malformed'))).toMatchObject({
      code: 'store_corrupt',
      message:
        'Cannot use the SQLite file /data/m.db: it is damaged or not a database. It was neither repaired nor replaced. Restore a backup, or move it away to start empty',
    })
  })
})
