import { describe, expect, it } from '@jest/globals'
import express5 from 'express'
import { noticeOf } from '../../support/events.js'
import { deliver, openMarketplace, serve } from '../../support/scene.js'
import { until } from '../../support/until.js'

describe('identifiers', () => {
  const ODD = [
    '/..%2f..%2foauth',
    '../../x',
    '//evil.example/',
    '@evil.example',
    'https://evil.example/?x',
    'a#b',
    'a?b=c&filter[uid]=other&client_secret=x',
    'a;b',
    '%00%0d%0a',
    'a b+c',
    '\\..\\x',
    "'; drop table subscriptions; --",
    'Ünïcødé ☕ 漢字 🛒',
    'مرحبا\u202e',
    '.',
    '..',
  ]
  const NEVER = ['a\r\nx-evil: 1', '\n', 'a\u0000b', '\ud800', 'x'.repeat(256)]

  it('A17 reach the platform as one decoded query value, at the configured origin, or not at all', async () => {
    const asked: { at: string; path: string; query: [string, string][]; token: string | undefined }[] = []
    const listener = (at: string) =>
      serve((req, res) => {
        const url = new URL(`http://platform.test${req.url}`)
        asked.push({
          at,
          path: `${req.method} ${String(req.url).split('?')[0]}`,
          query: [...url.searchParams],
          token: req.headers.authorization,
        })
        res.end(JSON.stringify(at === 'auth' ? { access_token: 't' } : { data: { subscriptions: [] } }))
      })
    const [baseUrl, authUrl] = [`${await listener('base')}/v/1`, await listener('auth')]
    const marketplace = openMarketplace({ baseUrl, authUrl })
    const url = await serve(express5().use(marketplace.router))
    for (const id of [...ODD, ...NEVER]) {
      expect(
        (await deliver(marketplace.webhooks.targetUrl(url), noticeOf(id, `${id}!`.slice(-256)))).status,
      ).toBe(200)
    }
    const reads = () => asked.filter(({ at }) => at === 'base')
    await until(
      'all subscriptions have been read',
      () => new Set(reads().map(({ query }) => query[0]?.[1])).size >= ODD.length,
    )

    for (const read of reads()) {
      expect(read).toEqual({
        at: 'base',
        path: 'GET /v/1/business/subscriptionsmng/v1/subscriptions',
        query: [['filter[uid]', expect.any(String)]],
        token: 'Bearer t',
      })
    }
    expect(new Set(reads().map(({ query }) => query[0]?.[1]))).toEqual(new Set(ODD))
    const tokenCalls = asked.filter(({ at }) => at === 'auth')
    for (const { path, query } of tokenCalls) {
      expect(path).toBe('POST /oauth/token')
      expect(query.map(([name]) => name)).toEqual([
        'client_id',
        'client_secret',
        'grant_type',
        'type',
        'business_uid',
      ])
    }
    expect(new Set(tokenCalls.map(({ query }) => query[4]?.[1]))).toEqual(new Set(ODD.map((id) => `${id}!`)))
  })
})
