import { describe, expect, it } from '@jest/globals'
import { EVENTS } from '../../lib/events/registry.js'
import type { Simulator } from '../../lib/testing/index.js'
import { jumpingClock } from '../support/machine/jumping-clock.js'
import {
  accessToken,
  NAMES,
  read,
  registerOverHttp,
  start,
  tokenQuery,
  tokenReply,
} from '../support/platform/simulator-calls.js'

describe('the list of subscriptions', () => {
  async function list(platform: Simulator, listed: string, token: string) {
    const query = new URLSearchParams({ 'filter[business_uid]': listed })
    const reply = await fetch(`${platform.baseUrl}/business/subscriptionsmng/v1/subscriptions?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const json = (await reply.json()) as { data?: { subscriptions: { uid: string }[] } }
    return { status: reply.status, uids: json.data?.subscriptions.map(({ uid }) => uid) }
  }

  it('has those of the business of the token, if it is switched on', async () => {
    const { platform } = await start({ listsSubscriptions: true })
    const bought = ['b1', 'b1', 'b2'].map(
      (business_uid) => platform.purchase({ business_uid, payment: 'succeeded' }).uid,
    )
    const token = await accessToken(platform, 'b1')
    expect(await list(platform, 'b1', token)).toEqual({ status: 200, uids: bought.slice(0, 2) })
    expect(await list(platform, 'b2', token)).toEqual({ status: 200, uids: [] })
    expect((await list(platform, 'b1', 'wrong')).status).toBe(401)
  })

  it('does not exist otherwise', async () => {
    const { platform } = await start()
    platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    expect((await list(platform, 'b1', await accessToken(platform, 'b1'))).status).toBe(400)
  })
})

describe('the token endpoint', () => {
  it('refuses wrong credentials as invalid_client', async () => {
    const { platform } = await start()
    platform.addBusiness('b1')
    for (const wrong of [{ client_id: 'x' }, { client_secret: 'x' }]) {
      const reply = await tokenReply(platform, 'b1', wrong)
      expect(reply).toMatchObject({ status: 401, json: { error: 'invalid_client' } })
    }
  })

  it('refuses other grants, and credentials outside the query', async () => {
    const { platform } = await start()
    platform.addBusiness('b1')
    expect(await tokenReply(platform, 'b1', { grant_type: 'client_credentials' })).toMatchObject({
      status: 400,
    })
    expect(await tokenReply(platform, 'b1', { type: 'x' })).toMatchObject({ status: 400 })
    expect(await tokenReply(platform, '')).toMatchObject({ status: 400 })
    const body = new URLSearchParams(tokenQuery('b1'))
    const inBody = await fetch(`${platform.authUrl}/oauth/token`, { method: 'POST', body })
    expect(inBody.status).toBe(401)
  })

  it('refuses unknown businesses, and those that uninstalled until they install again', async () => {
    const { platform } = await start()
    expect((await tokenReply(platform, 'b1')).status).toBe(403)
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const token = await accessToken(platform, 'b1')
    platform.uninstall('b1')
    expect((await tokenReply(platform, 'b1')).status).toBe(403)
    expect((await read(platform, uid, token)).status).toBe(403)
    expect(platform.servesTokens('b1')).toBe(false)
    platform.install('b1')
    expect((await read(platform, uid, token)).records).toMatchObject([{ purchase_state: 'canceled' }])
  })

  it('still serves a business while another of its apps is installed', async () => {
    const { platform } = await start({ apps: [{ codeName: 'one' }, { codeName: 'two' }] })
    platform.install('b1', 'one')
    platform.install('b1', 'two')
    platform.uninstall('b1', 'one')
    expect(platform.servesTokens('b1')).toBe(true)
    platform.uninstall('b1', 'two')
    expect(platform.servesTokens('b1')).toBe(false)
  })

  it('announces the lifetime of tokens in expires_in, and they end then', async () => {
    const { clock, jump } = jumpingClock()
    const { platform } = await start({ tokenLifetimeMs: 60_000, clock })
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const reply = await tokenReply(platform, 'b1')
    expect(reply.json).toMatchObject({ expires_in: 60, token_type: 'Bearer' })
    jump(60_000)
    expect((await read(platform, uid, String(reply.json.access_token))).status).toBe(401)

    const token = await accessToken(platform, 'b1')
    platform.faults.expireTokens()
    expect((await read(platform, uid, token)).status).toBe(401)
    platform.faults.expiresIn = 'soon'
    expect((await tokenReply(platform, 'b1')).json).toMatchObject({ expires_in: 'soon' })
    platform.faults.expiresIn = null
    expect((await tokenReply(platform, 'b1')).json).toMatchObject({ expires_in: null })
    platform.faults.tokenLifetimeMs = 5_000
    platform.faults.clear()
    expect((await tokenReply(platform, 'b1')).json).toMatchObject({ expires_in: 60 })
  })
})

describe('the read call', () => {
  it('needs an app token of the right business', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    expect((await read(platform, uid, '')).status).toBe(401)
    expect((await read(platform, uid, 'made-up')).status).toBe(401)
    expect((await read(platform, uid, platform.businessToken('b1'))).status).toBe(403)
    expect((await read(platform, uid, platform.directoryToken())).status).toBe(403)
    expect(await read(platform, uid, platform.appToken('b2'))).toMatchObject({ status: 200, records: [] })
    expect(await read(platform, uid, platform.appToken('b1'))).toMatchObject({ records: [{ uid }] })
  })

  it('returns an empty array for an unknown or removed uid, and 400 without one', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    const token = await accessToken(platform, 'b1')
    expect(await read(platform, 'unknown', token)).toMatchObject({ status: 200, records: [] })
    platform.remove(uid)
    expect(await read(platform, uid, token)).toMatchObject({ status: 200, records: [] })
    expect((await read(platform, '', token)).status).toBe(400)
  })

  it('shows undocumented states and fields after they were set', async () => {
    const { platform } = await start()
    const { uid } = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    platform.set(uid, { purchase_state: 'expired', loyalty: { level: 3 } })
    expect((await read(platform, uid)).records).toMatchObject([
      { purchase_state: 'expired', loyalty: { level: 3 } },
    ])
  })
})

describe('the register call', () => {
  it.each(NAMES)('accepts %s once, and only with the documented kinds of token', async (event) => {
    const { platform, target } = await start()
    const tokens = {
      app: platform.appToken('b1'),
      business: platform.businessToken('b1'),
      directory: platform.directoryToken(),
    }
    for (const [kind, token] of Object.entries(tokens)) {
      const accepted = (EVENTS[event].tokens as readonly string[]).includes(kind)
      expect(await registerOverHttp(platform, event, target.url, token)).toBe(accepted ? 201 : 403)
      if (accepted) expect(await registerOverHttp(platform, event, target.url, token)).toBe(422)
    }
  })

  it('says what it refuses, and which tokens an event is registered with', async () => {
    const { platform, target } = await start()
    const url = `${platform.baseUrl}/platform/v1/webhook/subscribe`
    const refusalOf = async (token: string, event: string, target_url: string, type = 'application/json') => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': type }
      const body = JSON.stringify({ event, target_url })
      const reply = await fetch(url, { method: 'POST', headers, body })
      const { errors } = (await reply.json()) as { errors: { code: string; message: string }[] }
      return [reply.status, ...errors.flatMap(({ code, message }) => [code, message])]
    }
    const token = platform.appToken('b1')
    for (const event of NAMES) {
      const kinds: readonly string[] = EVENTS[event].tokens
      if (kinds.includes('app')) continue
      expect(await refusalOf(token, event, target.url)).toEqual([
        ...[403, 'forbidden', `${event} is registered with: ${kinds.join(', ')} token`],
      ])
    }
    const event = NAMES.find((name) => (EVENTS[name].tokens as readonly string[]).includes('app')) as string
    expect(await refusalOf(token, event, target.url, 'text/plain')).toEqual([
      ...[415, 'unsupported_media_type', 'The Content-Type must be application/json'],
    ])
    expect(await refusalOf(token, 'nothing', target.url)).toEqual([
      ...[422, 'invalid', 'event is not registrable'],
    ])
    expect(await refusalOf(token, event, 'nowhere')).toEqual([
      ...[422, 'invalid', 'target_url is not an HTTP address'],
    ])
    await registerOverHttp(platform, event, target.url, token)
    expect(await refusalOf(token, event, target.url)).toEqual([
      ...[422, 'already_exists', 'The webhook already exists'],
    ])
  })

  it('refuses an invalid registration', async () => {
    const { platform, target } = await start()
    const token = platform.appToken('b1')
    expect(await registerOverHttp(platform, 'nothing', target.url, token)).toBe(422)
    expect(await registerOverHttp(platform, 'application/installed', 'nowhere', token)).toBe(422)
    expect(await registerOverHttp(platform, 'application/installed', target.url, '')).toBe(401)
    await expect(platform.register('application/installed', 'ftp://x')).rejects.toMatchObject({
      code: 'argument_invalid',
    })
    const url = `${platform.baseUrl}/platform/v1/webhook/subscribe`
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    expect((await fetch(url, { method: 'POST', headers, body: '{' })).status).toBe(400)
    expect((await fetch(url, { method: 'POST', headers, body: `"${'x'.repeat(70_000)}"` })).status).toBe(413)
    expect(
      (await fetch(url, { method: 'POST', headers: { ...headers, 'content-type': 'text/plain' } })).status,
    ).toBe(415)
    expect((await fetch(url)).status).toBe(405)
    expect((await fetch(`${platform.baseUrl}/oauth/token`, { method: 'POST' })).status).toBe(404)
  })
})
