import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import { ERROR_CODES, type ErrorCode, MarketplaceError, stackOf } from '../../lib/base/errors.js'
import { storeFor } from '../../lib/store-option.js'
import { anchorsOf } from '../support/docs/pages.js'

const ROOT = join(__dirname, '..', '..')
const LIB = join(ROOT, 'lib')

describe('MarketplaceError', () => {
  const { name } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

  it.each(Object.keys(ERROR_CODES) as ErrorCode[])('names the page that explains it: %s', (code) => {
    const error = new MarketplaceError(code, 'Cannot do it: for a test')
    const [, page = '', anchor = ''] = new RegExp(`^${name}/(docs/\\w+\\.md)#(\\w+)$`).exec(error.help) ?? []
    const text = readFileSync(join(ROOT, page), 'utf8')
    expect(anchorsOf(text)).toContain(anchor)
    expect(text).toContain(`| <a id="${anchor}"></a>\`${code}\` | ${error.status} |`)
    expect(error.retryable).toBe(ERROR_CODES[code].retryable)
  })

  it('keeps the original error as its cause', () => {
    const cause = new Error('the disk is full')
    expect(new MarketplaceError('store_unavailable', 'Cannot write: the disk is full', { cause }).cause).toBe(
      cause,
    )
  })
})

describe('the stack of an error', () => {
  it('has its class, its message and its frames, and those of its cause; nothing else has one', () => {
    const cause = new TypeError('of an inner call')
    const lines = stackOf(new RangeError('too far', { cause }))?.split('\n') ?? []
    expect(lines[0]).toBe('RangeError: too far')
    expect(lines[1]).toMatch(/^ +at .*errors\.test/)
    expect(lines).toContain('caused by TypeError: of an inner call')
    expect([stackOf('a text'), stackOf(null)]).toEqual([null, null])
  })
})

describe('an error that lib throws', () => {
  const sources = readdirSync(LIB, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith(join('console', 'page')))
    .map((file) => [file.replaceAll('\\', '/'), readFileSync(join(LIB, file), 'utf8')] as const)
  const made = sources.flatMap(([file, source]) =>
    [...source.matchAll(/(?:throw|reject\(|throw Object\.assign\() ?new (\w+)\(\s*([^\n]*)/g)].map(
      ([, kind = '', text = '']) => ({ file, kind, text }),
    ),
  )

  it('is found by the search in the sources', () => {
    expect(made.length).toBeGreaterThan(60)
  })

  it('is a MarketplaceError, or does not leave the part that throws it', () => {
    const others = made
      .filter(({ kind }) => !['MarketplaceError', 'ConfigError'].includes(kind))
      .filter(({ file, kind, text }) => !INSIDE.some((each) => isLike(each, { file, kind, text })))
    expect(others).toEqual([])
  })

  it('is still in the code if this list has it as an exception', () => {
    expect(INSIDE.filter((each) => !made.some((one) => isLike(each, one)))).toEqual([])
  })
})

describe('a store on PostgreSQL', () => {
  it('rejects with a MarketplaceError when the server does not answer, and so does every later call', async () => {
    const store = storeFor('postgres://127.0.0.1:1/none', systemClock)
    const calls = {
      open: () => store.open(),
      accept: () => store.accept([]),
      subscriptionsOf: () => store.subscriptionsOf('b1'),
      listEntries: () => store.listEntries({}),
      getEntry: () => store.getEntry('id'),
      replayEntry: () => store.replayEntry('id'),
      counts: () => store.counts(),
      backup: () => store.backup('file.db'),
    }
    for (const [call, made] of Object.entries(calls)) {
      const error = await made().catch((thrown: unknown) => thrown)
      expect([call, error]).toEqual([call, expect.any(MarketplaceError)])
    }
    await store.close()
  })
})

/** Errors that another part catches, with their origin and their handling. */
const INSIDE: { file: string; kind: string; text: string; becomes: string }[] = [
  { file: 'store/', kind: 'Error', text: 'the server returned no row', becomes: 'store_unavailable' },
  { file: 'store/sql/copy/', kind: 'Error', text: '', becomes: 'copy_failed' },
  { file: 'postgres/', kind: 'Error', text: 'the connections are being', becomes: 'store_unavailable' },
  { file: 'postgres/', kind: 'Error', text: 'IS_OVER', becomes: 'store_unavailable' },
  { file: 'postgres/', kind: 'Error', text: 'the connection does not', becomes: 'a new connection' },
  { file: 'sqlite/', kind: 'Error', text: 'not in this version', becomes: 'store_driver_missing' },
  { file: 'sqlite/file/thread.ts', kind: 'Error', text: 'cannot load', becomes: 'NoThread' },
  { file: 'sqlite/file/thread.ts', kind: 'NoThread', text: '', becomes: 'done without the thread' },
  { file: 'express/', kind: 'Error', text: 'accept returned', becomes: 'delivery_not_accepted' },
  { file: 'platform/', kind: 'ReadFailure', text: '', becomes: 'a result, or the code in it' },
  { file: 'platform/', kind: 'DOMException', text: '', becomes: 'platform_unreachable' },
  { file: 'platform/find-subscriptions.ts', kind: 'Error', text: 'the list has the', becomes: 'an example' },
  { file: 'platform/', kind: 'Unanswered', text: '', becomes: 'find_subscriptions_failed' },
  { file: 'base/waiting.ts', kind: 'DOMException', text: '', becomes: 'platform_unreachable' },
  { file: 'cli/', kind: 'Stop', text: '', becomes: 'a message and an exit code' },
  { file: 'cli/dev/memory.ts', kind: 'TypeError', text: 'no number', becomes: 'a Stop' },
  { file: 'cli/', kind: 'InvalidArgumentError', text: '', becomes: 'a message of the command line' },
  { file: 'console/', kind: 'Refusal', text: '', becomes: 'a reply of the console' },
  {
    file: 'console/server/business/lookup.ts',
    kind: 'Error',
    text: 'timeout',
    becomes: 'a search without names',
  },
  {
    file: 'console/server/business/lookup.ts',
    kind: 'TypeError',
    text: '',
    becomes: 'a search without names',
  },
]

function isLike(
  one: { file: string; kind: string; text: string },
  made: { file: string; kind: string; text: string },
) {
  return made.file.startsWith(one.file) && made.kind === one.kind && made.text.includes(one.text)
}
