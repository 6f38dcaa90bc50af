import { describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { CALLS } from '../../lib/console/index.js'
import { defineEvent, type ErrorCode, MarketplaceError } from '../../lib/index.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { internals } from '../support/internals.js'
import { CLIENT, createScene, DELIVERY_SECRET } from '../support/scene.js'
import { consoleCaller, mountConsole, type RoleName } from '../support/scenes/console.js'
import { until } from '../support/until.js'

/** Each value is in one place only, so a leak shows where it comes from. */
const CANARIES = {
  buyer: 'canary-buyer-7731',
  price: '77.31',
  field: 'canary-field-7731',
  payment: 'canary-payment-7731',
  unrecognised: 'canary-unrecognised-7731',
  key: 'canary-key-7731',
  nested: 'canary-nested-7731',
  /** No digits, so that it does not look like an identifier. */
  nickname: 'canary-nickname',
  name: 'canary_name',
  rule: 'canary of the rule',
  /** A name, and a value that the schema of an own event quotes. */
  issueName: 'canary-issue@example.com',
  issueValue: 'canary card 4111',
} as const
const SECRETS = {
  delivery: DELIVERY_SECRET,
  client: CLIENT.clientSecret,
  token: 'canary-token-7731',
} as const

describe.each(ENGINE_NAMES)('the answers of the console on %s', (engineName) => {
  const engine = useEngine(engineName)

  it('L27 never contain a secret, a token or the target address; and for support no buyer, no payload, no issue and no text of an error', async () => {
    const answers = {
      support: await everyAnswer('support', await engine.freshAddress()),
      operator: await everyAnswer('operator', await engine.freshAddress()),
    }
    for (const [role, found] of Object.entries(answers)) {
      expect(Object.keys(found).sort()).toEqual(
        Object.entries(CALLS)
          .filter((entry) => role === 'operator' || entry[1].role === 'support')
          .map(([name]) => name)
          .sort(),
      )
      for (const [name, text] of Object.entries(found))
        expect({ role, name, secrets: namesOf(SECRETS, text) }).toEqual({ role, name, secrets: [] })
    }
    for (const [name, text] of Object.entries(answers.support))
      expect({ name, canaries: namesOf(CANARIES, text) }).toEqual({ name, canaries: [] })
    for (const name of ['attention', 'group', 'entry', 'history', 'live'])
      expect({ name, hasClass: answers.support[name]?.includes('"error":"LedgerError"') }).toEqual({
        name,
        hasClass: true,
      })
    for (const name of ['entry', 'shapes']) expect(answers.support[name]).toContain('2 issues. ')
    // The control: an operator sees every value.
    expect(namesOf(CANARIES, Object.values(answers.operator).join()).sort()).toEqual(
      Object.keys(CANARIES).sort(),
    )
  }, 60_000)
})

describe('the health in the console', () => {
  it.each(['store_not_open', 'store_not_answering', 'store_write_failed', 'entitled_when_failed'] as const)(
    'L27 shows support no text of an error: %s',
    async (code) => {
      const { marketplace, app, url } = await createScene({ worker: false })
      const problems = [{ code, message: CANARIES.rule, next: '' }]
      mountConsole(app, {
        ...marketplace,
        health: async () => ({ status: 'failing', problems, counts: null }),
        readiness: async () => ({ ready: false, problems }),
      })
      const shown = async (role: RoleName) =>
        JSON.stringify((await consoleCaller(`${url}/ops`, role).read('health')).body).split(CANARIES.rule)
          .length - 1
      expect([await shown('support'), await shown('operator')]).toEqual([0, 2])
    },
  )
})

describe('a call of the console that fails', () => {
  it.each([
    ['store_unavailable', {}],
    ['store_corrupt', {}],
    ['argument_invalid', { cause: new Error('of a driver') }],
    ['platform_refused', {}],
  ] as const)('L27 shows support the code of the error, and no text of it: %s', async (code, options) => {
    const reply = await failing(code, options)
    expect((await reply('support')).body).toMatchObject({
      code,
      detail: `The call failed: ${code.replaceAll('_', ' ')}. An operator sees the text of the error.`,
    })
    expect((await reply('operator')).body).toMatchObject({ code, detail: CANARIES.rule })
  })

  it('shows everybody what is wrong with what was typed', async () => {
    const reply = await failing('argument_invalid')
    for (const role of ['support', 'operator'] as const)
      expect(await reply(role)).toMatchObject({ status: 400, body: { detail: CANARIES.rule } })
  })

  async function failing(code: ErrorCode, options?: ErrorOptions) {
    const { marketplace, app, url } = await createScene({ worker: false })
    const list = () => Promise.reject(new MarketplaceError(code, CANARIES.rule, options))
    mountConsole(app, { ...marketplace, journal: { ...marketplace.journal, list } })
    return (role: RoleName) => consoleCaller(`${url}/ops`, role).read('attention')
  }
})

class LedgerError extends Error {}

/** An event of the app, whose schema quotes what it refuses. */
const RATED = defineEvent({
  entity_name: 'application',
  event_type: 'rated',
  data: z.object({
    business_id: z.string(),
    stars: z.record(z.string(), z.number()),
    kind: z.string().refine(() => false, { error: ({ input }) => `unknown kind ${input}` }),
  }),
  tokens: ['app'],
  subject: ({ business_id }) => ({ business_uid: business_id }),
})

/** The answers of a console to each call, in a world that has these values everywhere. */
async function everyAnswer(role: RoleName, store: string): Promise<Record<string, string>> {
  const { platform, marketplace, app, url, target, deliver } = await createScene({
    store,
    events: { 'application/rated': RATED },
    entitledWhen(record) {
      if (record.business_uid === 'business-2') throw new LedgerError(CANARIES.rule)
      return record.purchase_state === 'purchased'
    },
    handlers: { retryDelaysMs: [] },
    ...internals({ pollMs: 50 }),
  })
  await platform.register('purchasable_subscription/updated', target)
  // The app's own handlers put everything into their errors. An operator sees these texts as they are.
  const secrets =
    role === 'operator'
      ? ''
      : `${target} Authorization: Bearer ${SECRETS.token} client_secret=${SECRETS.client}`
  const fail = (event: { data?: unknown; record?: unknown }) => {
    const { nickname } = (event.data ?? event.record ?? {}) as { nickname?: string }
    throw new LedgerError(`Cannot greet ${nickname}: ${secrets}: ${JSON.stringify(event)}`)
  }
  marketplace.onAny(fail)
  marketplace.onPurchaseChange(fail)
  marketplace.onUnrecognised((delivery) => fail({ data: delivery }))
  mountConsole(app, marketplace)

  const { uid } = platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
  platform.set(uid, {
    buyer_uid: CANARIES.buyer,
    purchase_price: CANARIES.price,
    note: CANARIES.field,
    payment_type: CANARIES.payment,
    nickname: CANARIES.nickname,
    purchase_state: 'suspended',
  })
  await deliver({
    entity_name: 'invoice',
    event_type: CANARIES.unrecognised,
    data: { [CANARIES.key]: 1, [CANARIES.name]: 2, list: [{ deep: CANARIES.nested }] },
  })
  await deliver({
    entity_name: 'application',
    event_type: 'rated',
    data: { business_id: 'business-1', stars: { [CANARIES.issueName]: 'x' }, kind: CANARIES.issueValue },
  })
  platform.purchase({ business_uid: 'business-2', payment: 'succeeded' })
  await platform.settled()
  await until(
    'the own rule fails',
    async () => (await marketplace.explain('business-2')).reason === 'entitled_when_failed',
  )
  await until(
    'the record with the values is read',
    async () => (await marketplace.subscriptions.get(uid))?.record?.buyer_uid === CANARIES.buyer,
  )
  const dead = await until('every entry is dead', async () => {
    const list = await marketplace.journal.list({ status: 'dead' })
    return list.length >= 4 && list.some(({ kind }) => kind === 'change') && list
  })
  const caller = consoleCaller(`${url}/ops`, role)
  const found: Record<string, string> = {}

  async function ask(name: keyof typeof CALLS, ...inputs: object[]) {
    if (CALLS[name].role === 'operator' && role === 'support') return
    for (const input of inputs) {
      const { status, body } =
        CALLS[name].kind === 'act'
          ? await caller.act(name, input)
          : await caller.read(name, input as Record<string, string>)
      expect({ name, input, status, why: body.detail }).toEqual({ name, input, status: 200, why: undefined })
      found[name] = (found[name] ?? '') + JSON.stringify(body)
    }
  }
  const business = { business_uid: 'business-1' }
  const reason = 'a test'
  await ask('session', {})
  await ask('search', { q: uid })
  await ask('business', business, { business_uid: 'business-2' })
  await ask('history', business)
  await ask('subscriptions', {})
  await ask('entry', ...dead.map(({ id }) => ({ id })))
  await ask('attention', {})
  const { groups } = (await caller.read('attention')).body
  await ask('group', ...groups.map(({ key }: { key: string }) => ({ key })))
  await ask('shapes', {})
  await ask('webhooks', {})
  await ask('live', {})
  await ask('health', {})
  await ask('activity', {})
  await ask('stored', business)
  await ask(
    'previewReplay',
    { status: 'dead' },
    ...groups.map(({ key }: { key: string }) => ({ group: key })),
  )
  await ask('outcomes', { ids: dead.map(({ id }) => id).join() })
  await ask('refresh', business, { business_uid: 'business-2' })
  await ask('track', { ...business, subscription_uid: uid })
  await ask('replay', { status: 'dead', reason })
  await ask('export', { ...business, reason })
  await ask('erase', { ...business, typed: 'business-1', reason })
  return found
}

function namesOf(canaries: Record<string, string>, text: string): string[] {
  return Object.entries(canaries).flatMap(([name, canary]) => (text.includes(canary) ? [name] : []))
}
