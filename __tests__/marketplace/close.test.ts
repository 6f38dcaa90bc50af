import { describe, expect, it } from '@jest/globals'
import express from 'express'
import { noticeOf } from '../support/events.js'
import { internals } from '../support/internals.js'
import { createScene, deliver, openMarketplace, serve } from '../support/scene.js'
import { createFileScene, tokensFor } from '../support/scenes/file-scene.js'
import { track } from '../support/scenes/purchases.js'
import { B1 } from '../support/settings.js'
import { gate, looks, until } from '../support/until.js'

describe('close', () => {
  it('lets a handler and a read finish, and stores their results', async () => {
    const { platform, store, marketplace } = await createFileScene({ closeTimeoutMs: 5_000 })
    const [called, finish] = [gate(), gate()]
    marketplace.onPurchaseChange(() => {
      called.open()
      return finish.opened
    })
    await track(platform, marketplace)
    await called.opened
    platform.faults.add({ on: 'read', kind: 'slow', ms: 200 })
    await track(platform, marketplace, 'b2')
    await until('the slow read has begun', () => tokensFor(platform, 'b2') > 0)
    const closed = marketplace.close()
    finish.open()
    await closed

    platform.faults.add({ on: 'platform', kind: 'down' })
    const next = openMarketplace(platform, { store })
    expect((await next.explain('b2')).subscriptions).toMatchObject([
      { purchase_state: 'purchased', pending: false },
    ])
    const changes = await next.journal.list({ kind: 'change' })
    expect(changes.find(({ business_uid }) => business_uid === B1)).toMatchObject({ status: 'done' })
  })

  it.each([
    ['a handler that never returns', 'handler', 200],
    ['a handler without grace', 'handler', 0],
    ['a read that hangs', 'read', 200],
    ['a token that never comes', 'token', 200],
  ] as const)('waits no longer than its grace for %s', async (_what, hung, closeTimeoutMs) => {
    const { platform, store, marketplace } = await createFileScene({
      closeTimeoutMs,
      ...internals({ pollMs: 50, callTimeoutMs: 60_000 }),
      handlers: { timeoutMs: 60_000 },
    })
    const called = gate()
    marketplace.onPurchaseChange(() => {
      called.open()
      return hung === 'handler' ? new Promise(() => {}) : undefined
    })
    if (hung !== 'handler') platform.faults.add({ on: hung, kind: 'hang' })
    await track(platform, marketplace)
    await until('the call hangs', () =>
      hung === 'handler' ? called.opened.then(() => true) : platform.requests.length > 0,
    )
    const begun = Date.now()
    await marketplace.close()
    expect(Date.now() - begun).toBeLessThan(8_000)

    // The next process continues at once. A change is the exception while its handler still runs: that is never called beside itself.
    platform.faults.clear()
    const next = openMarketplace(platform, { store })
    let again = 0
    next.onPurchaseChange(() => void again++)
    await until('the business has access', () => next.isEntitled(B1))
    if (hung !== 'handler') await until('the change is handled', () => again === 1)
    else await looks(3)
    expect(again).toBe(hung === 'handler' ? 0 : 1)
  })

  it('makes every later call fail with closed', async () => {
    const { marketplace } = await createFileScene()
    const { start, fetchAppToken, backup, settled, subscriptions, journal } = marketplace
    const { exportText, ...calls } = marketplace.businesses
    const businesses = { ...calls, exportText: () => exportText(B1).next() }
    const { register, check } = marketplace.webhooks
    await marketplace.close()
    // Without arguments: the end is noticed before they are.
    const groups = {
      subscriptions,
      businesses,
      journal,
      other: { start, fetchAppToken, backup, settled, register, check },
    }
    const asked = Object.entries(groups).flatMap(([group, calls]) =>
      Object.entries(calls).map(
        ([name, call]) => [`${group}.${name}`, call as () => Promise<unknown>] as const,
      ),
    )
    expect(asked).toHaveLength(23)
    for (const [name, call] of asked)
      expect([name, await call().catch(({ code, retryable }) => [code, retryable])]).toEqual([
        name,
        ['closed', false],
      ])
    expect(await marketplace.isEntitled(B1)).toBe(false)
  })

  it('K92 leaves a guard that answers 503, never 402, to a payer who is not in its memory', async () => {
    const { platform, marketplace } = await createScene()
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    await marketplace.settled()
    const paid = marketplace.requireEntitlement({ businessUid: () => B1 })
    const url = await serve(express().get('/reports', paid, (_req, res) => void res.json('here')))
    await marketplace.close()
    const reply = await fetch(`${url}/reports`)
    expect([reply.status, await reply.json()]).toEqual([
      503,
      expect.objectContaining({ code: 'entitlement_unknown' }),
    ])
    expect(await marketplace.explain(B1)).toMatchObject({ entitled: false, known: false })
  })

  it('loses no delivery that arrives during it: each is acknowledged and stored, or refused', async () => {
    const { platform, store, marketplace } = await createFileScene()
    const url = await serve(express().use('/hooks', marketplace.router))
    const target = marketplace.webhooks.targetUrl(`${url}/hooks`)
    const replies = Array.from({ length: 40 }, (_, i) => deliver(target, noticeOf(`s${i}`)))
    await replies[0]
    const closing = marketplace.close()
    replies.push(...Array.from({ length: 10 }, (_, i) => deliver(target, noticeOf(`late${i}`))))
    const statuses = (await Promise.all(replies)).map(({ status }) => status)
    await closing
    replies.push(deliver(target, noticeOf('after')))
    expect((await replies.at(-1))?.status).toBe(503)
    expect(statuses.every((status) => status === 200 || status === 503)).toBe(true)

    const next = openMarketplace(platform, { store })
    const kept = new Set((await next.journal.list({ limit: 1_000 })).map(({ id }) => id))
    for (const { status, id } of await Promise.all(replies)) {
      if (status === 200) expect(kept).toContain(id)
    }
  })

  it('answers questions that are waiting for a read', async () => {
    const { platform, marketplace } = await createScene({ freshness: { waitMs: 60_000 }, closeTimeoutMs: 50 })
    platform.faults.add({ on: 'read', kind: 'hang' })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await platform.settled()
    const waiting = [
      marketplace.isEntitled(B1),
      marketplace.explain(B1),
      marketplace.businesses.refresh(B1).catch(() => null),
    ]
    await marketplace.close()
    const [entitled, decision] = await Promise.all(waiting)
    expect(entitled).toBe(false)
    expect(decision).toMatchObject({ entitled: false, known: false })
  }, 10_000)

  it('answers them in a process without a worker, too', async () => {
    const { platform, marketplace } = await createFileScene({
      freshness: { waitMs: 60_000 },
      worker: false,
    })
    await track(platform, marketplace)
    const answer = marketplace.isEntitled(B1)
    expect(await Promise.race([answer, looks(3).then(() => 'waits')])).toBe('waits')
    await marketplace.close()
    expect(await answer).toBe(false)
  }, 10_000)
})
