import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { SETTINGS } from '../../lib/environment.js'
import { createProject } from '../package/installed-package.js'
import { temporaryFolder } from '../support/clean-up.js'
import { page, type Snippet, snippetsOf } from '../support/docs/pages.js'
import { APP_ENV } from '../support/docs/prelude.js'

const APP = block('docs/quickstart.md', 'ts', 'endOnSigterm(app.listen(')
const MARKETPLACE = block('docs/quickstart.md', 'ts', 'function endOnSigterm')
const OPTIONS = block('docs/quickstart.md', 'ts', '// options.ts')
const DOCKERFILE = block('docs/recipes.md', 'dockerfile', 'FROM').code
const POD = block('docs/recipes.md', 'yaml', 'terminationGracePeriodSeconds').code
const COMPOSE = block('docs/several-instances.md', 'yaml', 'image: my-app').code
const ENV_FILE = block('docs/quickstart.md', 'sh', 'MARKETPLACE_CLIENT_ID=').code

describe('K91 the containers on the pages', () => {
  it('set only variables that the app of the quickstart reads, and all that have no default', () => {
    const set = [
      ...[...DOCKERFILE.matchAll(/^ENV (\w+)=/gm)].map(([, name]) => name),
      ...[...POD.matchAll(/\{ name: ([A-Z_]+),/g)].map(([, name]) => name),
      ...[...COMPOSE.matchAll(/environment: \{ (MARKETPLACE_\w+):/g)].map(([, name]) => name),
    ]
    expect(set).toEqual(Array.from({ length: 3 }, () => 'MARKETPLACE_STORE'))
    const inFile = [...ENV_FILE.matchAll(/^(\w+)=/gm)].map(([, name]) => name)
    // The app and the command line read the same ones, so an answer of the command line is one of the app.
    expect(OPTIONS.code).toContain('export default optionsFromEnvironment(process.env)')
    expect([...new Set([...inFile, ...set])].sort()).toEqual(Object.keys(SETTINGS).sort())
  })

  it('start the file of the app, and mount the volume where its database is', () => {
    expect(DOCKERFILE).toContain(`CMD ["node", "${APP.file}"]`)
    const [, image] = /^ENV MARKETPLACE_STORE=sqlite:(.*)\/[^/]+$/m.exec(DOCKERFILE) ?? []
    expect(DOCKERFILE).toContain(`VOLUME ${image}\n`)
    expect(DOCKERFILE).toContain(`chown node ${image}\n`)
    expect(page('docs/recipes.md')).toContain(`-v marketplace:${image} `)
    const [, mounted, file] =
      /volume claim at `([^`]+)`[\s\S]*?`MARKETPLACE_STORE` with the value `sqlite:(.*)\/[^/]+`/.exec(
        page('docs/recipes.md'),
      ) ?? []
    expect(mounted).toBe(image)
    expect(file).toBe(mounted)
  })

  it('wait longer for the end than the app takes, and probe routes that it has', () => {
    const requestsMs = Number(
      /setTimeout\(resolve, ([\d_]+)\)/.exec(MARKETPLACE.code)?.[1]?.replaceAll('_', ''),
    )
    const preStopMs = 5_000
    const longestMs = requestsMs + 10_000
    const [, docker] = /--stop-timeout (\d+)/.exec(page('docs/recipes.md')) ?? []
    const [, compose] = /stop_grace_period: (\d+)s/.exec(COMPOSE) ?? []
    for (const seconds of [docker, compose]) expect(Number(seconds) * 1_000).toBeGreaterThan(longestMs)
    const [, seconds] = /terminationGracePeriodSeconds: (\d+)/.exec(POD) ?? []
    expect(Number(seconds) * 1_000).toBeGreaterThan(preStopMs + longestMs)
    const probes = [...POD.matchAll(/path: (\/\w+), port: (\d+)/g)]
    expect(probes).toHaveLength(2)
    for (const [, path, port] of probes) {
      expect(APP.code).toContain(`app.get('${path}'`)
      expect(APP.code).toContain(`PORT = '${port}'`)
    }
  })

  it('get an app that keeps its database where they say, answers the probes, and ends on SIGTERM', async () => {
    const created = createProject()
    const data = temporaryFolder()
    const [, store = ''] = /^ENV MARKETPLACE_STORE=(.*)$/m.exec(DOCKERFILE) ?? []
    for (const { file, code } of [APP, MARKETPLACE, OPTIONS]) created.write(file, code)
    created.write(
      'probe.ts',
      `await import('./${APP.file}')
await import('./${MARKETPLACE.file}').then(({ marketplace }) => marketplace.start())
for (const path of ['/livez', '/readyz', '/reports', '/%72eports'])
  console.log(path, (await fetch('http://localhost:' + process.env.PORT + path)).status)
process.kill(process.pid, 'SIGTERM')`,
    )
    const { code, stdout } = await created.tsx('probe.ts', {
      ...APP_ENV,
      PORT: String(20_000 + (process.pid % 10_000)),
      MARKETPLACE_STORE: store.replace('/data', data),
    })
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: '/livez 200\n/readyz 200\n/reports 401\n/%72eports 404\n',
    })
    expect(existsSync(join(data, 'marketplace.db'))).toBe(true)
    expect(existsSync(join(created.folder, 'marketplace.db'))).toBe(false)
  }, 60_000)
})

function block(path: string, language: string, text: string): Snippet {
  const found = snippetsOf(path, [language]).find(({ code }) => code.includes(text))
  if (!found) throw new Error(`${path} has no block with ${text}`)
  return found
}
