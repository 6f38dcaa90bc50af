import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { HOUR, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { noticeOf } from '../../support/events.js'
import { internals } from '../../support/internals.js'
import { startScraping } from '../../support/processes/exposition.js'
import { createScene } from '../../support/scene.js'
import { B1 } from '../../support/settings.js'
import { looks, until } from '../../support/until.js'

const CREDENTIALS_REFUSED = {
  on: 'token',
  kind: 'status',
  status: 401,
  body: { error: 'invalid_client' },
} as const

describe('F5 a platform that refuses the credentials of the app', () => {
  it('pauses all reads, is reported by health, and leaves nothing dead or given up', async () => {
    const { platform, marketplace, jump } = await createScene({ freshness: { waitMs: 0 } })
    const refusal = platform.faults.add(CREDENTIALS_REFUSED)
    const businesses = ['b1', 'b2', 'b3', 'b4']
    for (const business_uid of businesses) platform.purchase({ business_uid, payment: 'succeeded' })
    await platform.settled()
    await until('the refusal is logged', async () => (await marketplace.health()).problems.length > 0)
    expect(await marketplace.health()).toMatchObject({
      status: 'degraded',
      problems: [{ code: 'credentials_refused' }],
    })
    // The refusal of a single business would be final after 12 tries and 72 hours.
    for (let day = 0; day < 14; day++) {
      jump(24 * HOUR)
      const before = refusal.strikes
      await until('another try is made', async () => {
        // A try that was under way during the jump may have been refused only after it.
        const { problems } = await marketplace.health()
        if (refusal.strikes > before) return true
        if (problems.some(({ code }) => code === 'credentials_refused')) jump(MINUTE)
      })
      await looks(2)
      // These are at most the calls that were under way when the first of them was answered.
      expect(refusal.strikes - before).toBeLessThanOrEqual(8)
    }
    const { counts } = await marketplace.health()
    expect(counts).toMatchObject({ givenUp: 0, dead: 0, requested: businesses.length })
    refusal.remove()
    jump(HOUR)
    for (const business of businesses) await until(business, () => marketplace.isEntitled(business))
    // A loop that has not looked since the jump, an hour by this clock, counts as stuck until its next look.
    await until('health is ok', async () => (await marketplace.health()).status === 'ok')
    expect(await marketplace.health()).toMatchObject({ status: 'ok', problems: [] })
  })
})

describe('F8 tokens', () => {
  it('are cached in memory only', async () => {
    const folder = temporaryFolder()
    const tokens: string[] = []
    const { platform, marketplace } = await createScene({
      store: `sqlite:${join(folder, 'm.db')}`,
      platform: {
        async fetch(input, init) {
          const token = new Headers(init?.headers).get('authorization')?.replace('Bearer ', '')
          if (token) tokens.push(token)
          return fetch(input, init)
        },
      },
    })
    platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is seen', () => marketplace.isEntitled(B1))
    const files = readdirSync(folder)
    expect(tokens.length).toBeGreaterThan(0)
    expect(files.length).toBeGreaterThan(0)
    const texts = files.map((file) => readFileSync(join(folder, file), 'latin1'))
    // The control: the search would find a stored token, because it finds the business.
    expect(texts.some((text) => text.includes(B1))).toBe(true)
    for (const token of tokens) expect(files.filter((_file, at) => texts[at]?.includes(token))).toEqual([])
  })
})

describe('F9 a token endpoint that does not answer', () => {
  it('does not stop known businesses with a token while new ones wait for theirs', async () => {
    const { platform, marketplace, deliver } = await createScene({
      ...internals({ callTimeoutMs: 20_000 }),
      freshness: { waitMs: 0 },
    })
    const { uid } = platform.purchase({ business_uid: B1, payment: 'succeeded' })
    await until('the purchase is seen', () => marketplace.isEntitled(B1))
    const slow = platform.faults.add({ on: 'token', kind: 'slow', ms: 15_000 })
    for (let at = 0; at < 12; at++) platform.purchase({ business_uid: `new-${at}`, payment: 'succeeded' })
    await platform.settled()
    // Subscriptions that were never read have half of the slots.
    await until('two calls wait for a token', () => slow.strikes >= 2)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.cancel(uid)
    await deliver(noticeOf(uid, B1))
    await until('the cancellation is seen', async () => !(await marketplace.isEntitled(B1)))
  })

  it('does not stop known businesses with a token while other known ones wait for theirs', async () => {
    const { platform, marketplace, deliver } = await createScene({
      ...internals({ callTimeoutMs: 20_000 }),
      freshness: { waitMs: 0 },
    })
    const others = Array.from({ length: 12 }, (_, at) => `known-${at}`)
    const uids = new Map<string, string>()
    for (const business_uid of [B1, ...others]) {
      uids.set(business_uid, platform.purchase({ business_uid, payment: 'succeeded' }).uid)
      await until('the purchase is seen', () => marketplace.isEntitled(business_uid))
    }
    // All tokens have expired, and one business has a new one.
    platform.faults.expireTokens()
    await marketplace.businesses.refresh(B1)
    const slow = platform.faults.add({ on: 'token', kind: 'slow', ms: 15_000 })
    for (const business of others) await deliver(noticeOf(uids.get(business) as string, business))
    await until('four calls wait for a token', () => slow.strikes >= 4)
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.cancel(uids.get(B1) as string)
    await deliver(noticeOf(uids.get(B1) as string))
    await until('the cancellation is seen', async () => !(await marketplace.isEntitled(B1)))
  })
})

describe('K68 credentials that are refused at a regular read', () => {
  it('degrade the health and keep the gauge of paused reads until a read gets another answer, though the next one is due hours later', async () => {
    const { scrape } = await startScraping()
    const { platform, marketplace, jump, codes } = await createScene({ freshness: { waitMs: 0 } })
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await until('the purchase is seen', () => marketplace.isEntitled('b1'))
    const refusal = platform.faults.add(CREDENTIALS_REFUSED)
    await until('a regular read is refused', async () => {
      jump(HOUR)
      await looks(2)
      return refusal.strikes > 0
    })
    for (let i = 0; i < 5; i++) {
      jump(12 * SECOND)
      await until('the worker looks for work', async () => !(await codes()).includes('worker_stuck'))
      expect(await codes()).toContain('credentials_refused')
      expect((await scrape()).get('marketplace_webhooks_reads_paused')).toBe(1)
    }
    refusal.remove()
    expect((await marketplace.businesses.refresh('b1')).entitled).toBe(true)
    await until('health is ok', async () => (await marketplace.health()).status === 'ok')
    expect((await scrape()).get('marketplace_webhooks_reads_paused')).toBe(0)
  })
})
