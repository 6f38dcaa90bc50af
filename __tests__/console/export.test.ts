import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import { sendFile } from '../../lib/console/server/http.js'
import { onCleanUp } from '../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { storeOption, wrapStore } from '../support/engines/store-option.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { createScene } from '../support/scene.js'
import { consoleCaller, mountConsole } from '../support/scenes/console.js'
import { addDeadEntries } from '../support/scenes/large-tables.js'
import { until } from '../support/until.js'

const ENTRIES = 1_000
const PAYLOAD = { text: 'x'.repeat(55_000) }
const BUSINESS = { business_uid: 'b1', reason: 'a test' }

describe.each(ENGINE_NAMES)('an export of 55 MB in the console on %s', (engineName) => {
  const engine = useEngine(engineName)

  it('K458 is the whole export, and comes in pieces', async () => {
    const { marketplace, begin } = await stage(await engine.freshAddress())
    const reply = await begin()
    const chunks: Buffer[] = []
    for await (const chunk of reply) chunks.push(chunk)
    expect(reply.headers['content-length']).toBeUndefined()
    const { journal, ...rest } = JSON.parse(Buffer.concat(chunks).toString())
    const data = await marketplace.businesses.export('b1')
    expect(rest).toEqual({
      business_uid: 'b1',
      exportedAt: expect.any(String),
      subscriptions: [],
      candidateOf: [],
      search: null,
    })
    const idsOf = (entries: { id: string }[]) => entries.map(({ id }) => id).sort()
    expect(idsOf(journal)).toEqual(idsOf(data.journal))
    expect(journal[1]).toEqual(data.journal.find(({ id }) => id === journal[1].id))
  }, 60_000)

  it('K458 is read as fast as the person takes it, while others search, and no further when the person leaves', async () => {
    const { begin, operator, listed, restAfter } = await stage(await engine.freshAddress())
    const reply = await begin()
    await restAfter()
    expect(listed()).toBeLessThan(ENTRIES / 2)
    expect((await operator.read('subscriptions')).status).toBe(200)
    const next = operator.act('export', { ...BUSINESS, business_uid: 'b2' })
    await restAfter()
    const before = listed()
    reply.destroy()
    expect((await next).status).toBe(200)
    // The page under way, and the one page of the other business.
    expect(listed()).toBeLessThanOrEqual(before + 200)
  }, 60_000)

  it('K458 breaks off visibly when its reading fails in the middle', async () => {
    const { begin, failAfter, operator } = await stage(await engine.freshAddress())
    failAfter(300)
    const reply = await begin()
    expect(reply.statusCode).toBe(200)
    await expect(reply.resume().toArray()).rejects.toThrow('aborted')
    failAfter(0)
    expect((await operator.act('export', BUSINESS)).status).toBe(500)
    failAfter(Number.POSITIVE_INFINITY)
    expect((await operator.act('export', { ...BUSINESS, business_uid: 'b2' })).status).toBe(200)
  }, 60_000)
})

describe('a file that nobody takes', () => {
  it('K458 is no longer sent after a time', async () => {
    let isEnded = false
    async function* pieces() {
      try {
        for (;;) yield 'x'.repeat(65_536)
      } finally {
        isEnded = true
      }
    }
    const server = createServer((_req, res) => {
      sendFile(res, { fileName: 'f.json', pieces: pieces(), stalledMs: 200 })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onCleanUp(() => server.closeAllConnections())
    onCleanUp(() => server.close())
    const asked = request({ host: '127.0.0.1', port: (server.address() as AddressInfo).port }).end()
    asked.on('error', () => {})
    const [reply] = (await once(asked, 'response')) as [IncomingMessage]
    reply.on('error', () => {})
    reply.pause()
    await until('the sending ends', () => isEnded)
  })
})

/** A console on a business of 55 MB. */
async function stage(address: string) {
  const opened = await openStoreWithSql(address)
  await addDeadEntries(opened, ENTRIES)
  await opened.sql(`update journal set business_uid = 'b1', payload = '${JSON.stringify(PAYLOAD)}'`)
  let listed = 0
  let most = Number.POSITIVE_INFINITY
  const counted = wrapStore(opened.store, async (name, call) => {
    const found = await call()
    if (name !== 'listEntries') return found
    listed += (found as unknown[]).length
    if (listed > most) throw new Error('broken by the test')
    return found
  })
  const { app, url, marketplace } = await createScene({ store: storeOption(counted), worker: false })
  mountConsole(app, marketplace)
  const operator = consoleCaller(`${url}/ops`, 'operator')
  const { token } = (await operator.read('session')).body

  return {
    marketplace,
    operator,
    listed: () => listed,
    failAfter(entries: number) {
      listed = 0
      most = entries
    },
    /** Resolves when nothing was listed for half a second. */
    async restAfter() {
      let seen = -1
      let since = Date.now()
      await until('the reading rests', () => {
        if (seen !== listed) since = Date.now()
        seen = listed
        return Date.now() - since > 500
      })
    },
    /** Asks for the export, and takes nothing of it yet. */
    async begin(): Promise<IncomingMessage> {
      const asked = request(`${url}/ops/call/export`, {
        method: 'POST',
        headers: {
          ...{ 'content-type': 'application/json', 'x-person': 'operator' },
          ...{ 'sec-fetch-site': 'same-origin', 'x-console-token': token },
        },
      })
      asked.on('error', () => {})
      asked.end(JSON.stringify(BUSINESS))
      const [reply] = (await once(asked, 'response')) as [IncomingMessage]
      return reply
    },
  }
}
