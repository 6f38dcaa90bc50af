import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import express5 from 'express'
import { systemClock } from '../../../lib/base/clock.js'
import { storeFor } from '../../../lib/store-option.js'
import { type Simulator, sampleDelivery } from '../../../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from '../../support/clean-up.js'
import { storeOption, wrapStore } from '../../support/engines/store-option.js'
import { noticeOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { captureDebug } from '../../support/output.js'
import { startScraping } from '../../support/processes/exposition.js'
import {
  createScene,
  deliver,
  newFile,
  OUR_ITEM,
  openMarketplace,
  serve,
  startPlatform,
} from '../../support/scene.js'
import { B1 } from '../../support/settings.js'
import { until } from '../../support/until.js'

const express4 = require('express-4') as typeof express5

describe('a sender without the secret', () => {
  it('A1 causes no work in the database and no line in the log', async () => {
    const calls: string[] = []
    const store = wrapStore(storeFor('sqlite::memory:', systemClock), (name, call) => {
      calls.push(name)
      return call()
    })
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { store: storeOption(store), worker: false })
    await marketplace.start()
    const url = await serve(express5().use('/hooks', marketplace.router))
    const target = marketplace.webhooks.targetUrl(`${url}/hooks`)
    const lines = captureDebug()
    calls.length = 0
    for (const path of [
      '',
      '/',
      '/x',
      `${target.slice(url.length)}x`,
      '/hooks/',
      '/hooks/%',
      '/hooks?secret=1',
    ]) {
      for (let i = 0; i < 20; i++) {
        const reply = await fetch(`${url}/hooks${path}`, {
          method: 'POST',
          body: JSON.stringify(noticeOf('s')),
        })
        expect([reply.status, await reply.text()]).toEqual([404, ''])
      }
    }
    expect({ calls, lines }).toEqual({ calls: [], lines: [] })
    // The control: a delivery is stored, and a failed one causes a log line.
    await deliver(target, noticeOf('s'))
    expect(calls).toEqual(['accept'])
    await store.close()
    await deliver(target, noticeOf('s'))
    expect(lines).toHaveLength(1)
  })
})

describe('a sender with the secret', () => {
  it('A9 that sends a flood of forged ids delays known customers by a few seconds at most', async () => {
    const { platform, marketplace, deliver } = await createScene({ freshness: { waitMs: 0 } })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the business has access', () => marketplace.isEntitled(B1))
    // At 4 at once and 80 a second, the flood keeps the token endpoint busy for 20 s.
    platform.faults.add({ on: 'token', kind: 'slow', ms: 50 })
    platform.faults.expireTokens()
    const flood = Array.from({ length: 1_600 }, (_, i) => noticeOf(`made-up-${i}`, `nobody-${i}`))
    for (let round = 0; round < 2; round++) {
      for (let at = 0; at < flood.length; at += 320) {
        expect(await deliver(flood.slice(at, at + 320))).toMatchObject({ status: 200 })
      }
    }
    platform.paymentIssue(uid)
    const begun = Date.now()
    await until('the access has ended', async () => !(await marketplace.isEntitled(B1)))
    platform.confirmPayment(uid)
    await until('the business has access again', () => marketplace.isEntitled(B1))
    // This is before the end of the flood.
    expect(Date.now() - begun).toBeLessThan(10_000)

    const { counts } = await marketplace.health()
    // There is one row for each forged subscription, however often it was named, and the flood still goes on.
    expect(counts?.requested).toBeLessThanOrEqual(1_601)
    expect(counts?.requested).toBeGreaterThan(1_000)
    const tokenCalls = platform.requests.filter(({ endpoint }) => endpoint === 'token')
    expect(Math.max(...tokenCalls.map(({ inFlight }) => inFlight))).toBeLessThanOrEqual(4)
    const perBusiness = new Map<string, number>()
    for (const { business_uid = '' } of tokenCalls) {
      perBusiness.set(business_uid, (perBusiness.get(business_uid) ?? 0) + 1)
    }
    expect(perBusiness.size).toBeGreaterThan(5)
    expect(Math.max(...perBusiness.values())).toBeLessThanOrEqual(2)
  })

  it('A10 that forges a notice of a real subscription causes one read and changes nothing', async () => {
    const { platform, marketplace, deliver } = await createScene()
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    expect(await marketplace.isEntitled(B1)).toBe(true)
    const before = await seenOf(platform, marketplace, uid)
    await deliver(noticeOf(uid, B1))
    expect(await marketplace.isEntitled(B1)).toBe(true)
    // The purchase of another business is read after it, so by then every immediate read has been made.
    platform.purchase({ business_uid: 'business-two', payment: 'succeeded' })
    await platform.settled()
    expect(await marketplace.isEntitled('business-two')).toBe(true)
    expect(await seenOf(platform, marketplace, uid)).toEqual({ ...before, reads: before.reads + 1 })
  })

  it.each(['update', 'created'])(
    'A11 that forges a full record with purchased, sent as %s, gets no access',
    async (event_type) => {
      const { platform, marketplace, deliver } = await createScene()
      const { uid } = platform.purchase({ business_uid: B1, payment: 'failed' })
      await platform.settled()
      expect(await marketplace.isEntitled(B1)).toBe(false)
      const targets = [
        [B1, uid],
        [B1, 'made-up'],
        ['nobody', 'made-up-too'],
      ] as const
      for (const [business_uid, forged] of targets) {
        const sample = sampleDelivery('purchasable_subscription/updated', {
          uid: forged,
          business_uid,
          purchasable_uid: OUR_ITEM,
          purchase_state: 'purchased',
          updated_at: '2999-01-01T00:00:00.000Z',
        })
        expect(await deliver({ ...sample, event_type })).toMatchObject({ status: 200 })
        expect(await marketplace.isEntitled(business_uid)).toBe(false)
      }
      const refreshed = await Promise.all([B1, 'nobody'].map((each) => marketplace.businesses.refresh(each)))
      expect(refreshed.map(({ entitled }) => entitled)).toEqual([false, false])
      const changes = await marketplace.journal.list({ kind: 'change' })
      expect(changes.map(({ payload }) => (payload as { to: string }).to)).toEqual(['suspended'])
    },
  )
})

describe('the record of another business', () => {
  it('A12 is discarded and counted, and never stored', async () => {
    const { scrape } = await startScraping()
    const folder = temporaryFolder()
    const foreign = {
      uid: 's1',
      business_uid: 'business-two',
      purchasable_uid: OUR_ITEM,
      purchase_state: 'purchased',
      display_name: 'nobody else may see this',
    }
    const platform = await serve((req, res) => {
      const isToken = req.url?.startsWith('/oauth/token')
      res.end(JSON.stringify(isToken ? { access_token: 't' } : { data: { subscriptions: [foreign] } }))
    })
    const marketplace = openMarketplace(
      { baseUrl: platform, authUrl: platform },
      { store: `sqlite:${join(folder, 'm.db')}` },
    )
    await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: B1 })
    const decision = await until('the subscription is read', async () => {
      const decision = await marketplace.explain(B1)
      return decision.subscriptions[0]?.failure && decision
    })
    expect(decision).toMatchObject({
      entitled: false,
      subscriptions: [{ purchase_state: null, failure: 'platform_record_mismatch' }],
    })
    expect(await marketplace.explain('business-two')).toMatchObject({ reason: 'unknown_business' })
    expect(await marketplace.journal.list({ kind: 'change' })).toEqual([])
    for (const file of readdirSync(folder)) {
      expect(readFileSync(join(folder, file), 'latin1')).not.toContain('nobody else')
    }
    const reads = [...(await scrape())].filter(([name, count]) => name.includes('_reads_total') && count > 0)
    expect(reads.map(([name]) => name)).toEqual(['marketplace_webhooks_reads_total{outcome="refused"}'])
  })
})

describe('a sender on a bad connection', () => {
  it('A13 that sends one byte a second gets 408 at the deadline, and its socket is closed', async () => {
    const platform = await startPlatform()
    const marketplace = openMarketplace(platform, { ...internals({ bodyTimeoutMs: 2_500 }) })
    const ends = [express4, express5].map(async (express) => {
      const url = new URL(marketplace.webhooks.targetUrl(await serve(express().use(marketplace.router))))
      const socket = connect(Number(url.port), url.hostname)
      onCleanUp(() => socket.destroy())
      let reply = ''
      socket
        .on('error', () => {})
        .on('data', (data) => {
          reply += data
        })
      await once(socket, 'connect')
      const begun = Date.now()
      socket.write(`POST ${url.pathname} HTTP/1.1\r\nhost: a\r\ncontent-length: 200\r\n\r\n`)
      const trickle = setInterval(() => socket.write('{'), 1_000)
      await once(socket, 'close')
      clearInterval(trickle)
      return { reply, afterMs: Date.now() - begun }
    })
    for (const { reply, afterMs } of await Promise.all(ends)) {
      expect(reply).toMatch(/^HTTP\/1\.1 408 .*\r\nconnection: close\r\n.*body_timeout/is)
      expect(afterMs).toBeGreaterThanOrEqual(2_450)
      expect(afterMs).toBeLessThan(7_500)
    }
    expect(await marketplace.journal.list()).toEqual([])
  })

  it('A15 that disconnects before the reply has its delivery stored once', async () => {
    const platform = await startPlatform()
    const store = newFile()
    const marketplace = openMarketplace(platform, { store, worker: false })
    await marketplace.start()
    const url = new URL(marketplace.webhooks.targetUrl(await serve(express5().use(marketplace.router))))
    for (let i = 0; i < 5; i++) {
      const body = JSON.stringify(noticeOf(`s${i}`))
      const socket = connect(Number(url.port), url.hostname)
      socket.on('error', () => {})
      await once(socket, 'connect')
      const head = `POST ${url.pathname} HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`
      socket.write(head + body, () => socket.destroySoon())
      await once(socket, 'close')
    }
    const subjects = async () =>
      (await marketplace.journal.list()).map(({ subscription_uid }) => subscription_uid).sort()
    await until('every delivery is stored', async () => (await subjects()).length >= 5)
    // Later deliveries are stored later, so all deliveries of the sender have arrived.
    await deliver(url.href, noticeOf('last'))
    expect(await subjects()).toEqual(['last', 's0', 's1', 's2', 's3', 's4'])
  })
})

async function seenOf(
  platform: Simulator,
  marketplace: { journal: { list(filter: object): Promise<unknown[]> } },
  uid: string,
) {
  const reads = platform.requests.filter((each) => each.endpoint === 'read' && each.subscription_uid === uid)
  return {
    reads: reads.length,
    changes: await marketplace.journal.list({ kind: 'change', subscriptionUid: uid }),
  }
}
