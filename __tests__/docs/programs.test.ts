import { describe, expect, it } from '@jest/globals'
import { createProject } from '../package/installed-package.js'
import { PAGES, snippetsOf } from '../support/docs/pages.js'
import { APP_ENV } from '../support/docs/prelude.js'

/** `npm run test:consumers` runs these programs with their frameworks. */
const PROGRAMS = [...PAGES.keys()].flatMap((path) =>
  snippetsOf(path, ['ts', 'tsx']).filter(({ marks }) => marks.includes('external')),
)

describe('K97 the programs with a paid route', () => {
  it('send it so that no cache stores it', () => {
    const programs = [...PROGRAMS, ...snippetsOf('docs/quickstart.md', ['ts'])]
    // A page of Next is made anew for each request, because it reads the session.
    const paid = programs.filter(
      ({ code, file, language }) =>
        /\b(requireEntitlement|paidStatus)\(/.test(code) && language === 'ts' && file !== 'lib/paid.ts',
    )
    expect(paid.map(({ file, page }) => `${page} ${file}`)).toHaveLength(4)
    for (const { code } of paid) expect(code).toMatch(/Cache-Control'?[,:] 'private, no-store'/)
  })
})

describe('K96 the programs for other frameworks', () => {
  it('import the marketplace of the app from its own file', () => {
    const using = PROGRAMS.filter(({ code }) => /\bmarketplace\.(listener|router)\b/.test(code))
    expect(using.length).toBeGreaterThan(3)
    for (const { code } of using)
      expect(code).toMatch(/^import \{.*\bmarketplace\b.*\} from '\.\/marketplace\.ts'$/m)
  })

  it('get one that neither serves nor handles a signal, so the end of the program is its own', async () => {
    const project = createProject()
    for (const { file, code } of snippetsOf('docs/quickstart.md', ['ts'])) project.write(file, code)
    project.write(
      'program.ts',
      `import { createServer } from 'node:http'
import { Server } from 'node:net'
const listening: number[] = []
const { listen } = Server.prototype
Server.prototype.listen = function (...given) { listening.push(1); return listen.apply(this, given) }
const { marketplace, endOnSigterm } = await import('./marketplace.ts')
await marketplace.start()
console.log('servers', listening.length, 'signals', process.listenerCount('SIGTERM'))
endOnSigterm(createServer().listen(0, () => process.kill(process.pid, 'SIGTERM')))`,
    )
    const { code, stdout } = await project.tsx('program.ts', {
      ...APP_ENV,
      MARKETPLACE_STORE: 'sqlite::memory:',
    })
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'servers 0 signals 0\n' })
  }, 60_000)
})
