import { describe, expect, it } from '@jest/globals'
import { z } from 'zod'
import { type AnnouncedRecord, parseRecord, type SubscriptionRecord } from '../../lib/base/record.js'
import { type Classification, createClassifier } from '../../lib/events/classify.js'
import { defineEvent } from '../../lib/events/define-event.js'
import {
  type AnyEvent,
  createRegistry,
  EVENTS,
  type EventData,
  type EventName,
  type MarketplaceEvent,
  type Registry,
  type TokensOf,
} from '../../lib/events/registry.js'
import type { Subscription } from '../../lib/store/port/store.js'
import { customEvents, holds, type Same } from '../support/scenes/own-events.js'

type Custom = typeof customEvents

describe('the types of the events', () => {
  it('name the seven events', () => {
    holds<
      Same<
        EventName,
        | 'purchasable_subscription/create'
        | 'purchasable_subscription/update'
        | 'purchasable_subscription/updated'
        | 'app_subscription/installed'
        | 'app_subscription/uninstalled'
        | 'application/installed'
        | 'application/uninstalled'
      >
    >()
    // @ts-expect-error no such event
    const name: EventName = 'purchasable_subscription/created'
    expect(EVENTS).not.toHaveProperty([name])
  })

  it('give each event its tokens', () => {
    holds<Same<TokensOf<'purchasable_subscription/create'>, 'app'>>()
    holds<Same<TokensOf<'purchasable_subscription/updated'>, 'app' | 'business' | 'directory'>>()
    holds<Same<TokensOf<'app_subscription/installed'>, 'business' | 'directory'>>()
    // @ts-expect-error an app token does not register it
    const kind: TokensOf<'app_subscription/uninstalled'> = 'app'
    expect(EVENTS['app_subscription/uninstalled'].tokens).not.toContain(kind)
  })

  it('give each event its data', () => {
    type Notice = EventData<'purchasable_subscription/update'>
    holds<Same<Notice['business_id'], string>>()
    holds<Same<Notice['purchasable_uid'], string | null>>()
    holds<Same<Notice['subscription_uid'], string>>()
    holds<Same<Notice['anything'], unknown>>()
    type Create = EventData<'purchasable_subscription/create'>
    holds<Same<Create['subscription_uid'], string>>()
    holds<Same<Create['purchasable_uid'], string | null>>()
    holds<Same<Create['anything'], unknown>>()
    holds<Same<EventData<'app_subscription/installed'>['business_id'], string>>()
    holds<Same<EventData<'app_subscription/installed'>['app_id'], string>>()
    holds<Same<EventData<'application/installed'>['app_code_name'], string>>()
    holds<Same<EventData<'application/installed'>['event_time'], string | number | null>>()
    type Updated = EventData<'purchasable_subscription/updated'>
    holds<Same<Updated['uid'], string>>()
    holds<Same<Updated['business_uid'], string>>()
    holds<Same<Updated['purchasable_uid'], string | null>>()
    holds<Same<Updated['purchase_state'], string | null>>()
    holds<Same<Updated['updated_at'], string | null | undefined>>()
    holds<Same<Updated['anything'], unknown>>()
    // @ts-expect-error identifiers are strings by the time a handler sees them
    const notice: Notice = { business_id: 1, purchasable_uid: null, subscription_uid: 's' }
    expect(EVENTS['purchasable_subscription/update'].data.safeParse(notice).data?.business_id).toBe('1')
  })

  it('show that an updated event only announces a record', () => {
    const data = EVENTS['purchasable_subscription/updated'].data.parse(record())
    const announced: AnnouncedRecord = data
    // @ts-expect-error a record that was read has an item and a state
    const asRecord: SubscriptionRecord = data
    expect([announced.uid, asRecord.uid]).toEqual(['s', 's'])
  })

  it('pass to each subject the data of its own schema', () => {
    type Fits = {
      [N in EventName]: EventData<N> extends Parameters<(typeof EVENTS)[N]['subject']>[0] ? true : N
    }[EventName]
    expect(holds<Same<Fits, true>>()).toBe(true)
  })

  it('distinguish events by name', () => {
    const event: AnyEvent = {
      id: '1',
      name: 'application/installed',
      entity_name: 'application',
      event_type: 'installed',
      data: { business_id: 'b', app_code_name: 'a', event_time: null },
      receivedAt: '2024-05-01T10:00:00.000Z',
    }
    expect(appOf(event)).toBe('a')
    // @ts-expect-error the entity of another event
    const mixed: MarketplaceEvent<'application/installed'> = { ...event, entity_name: 'app_subscription' }
    expect(mixed.name).toBe(event.name)
  })

  it('distinguish classifications by recognised and name', () => {
    const result: Classification = createClassifier(EVENTS)({
      entity_name: 'app_subscription',
      event_type: 'installed',
      data: { business_id: 'b', app_id: 72 },
    })
    // @ts-expect-error only a recognised result has a name
    expect(result.name).toBeDefined()
    if (!result.recognised || result.name !== 'app_subscription/installed') throw new Error('unreachable')
    const appId: string = result.data.app_id
    expect(appId).toBe('72')
  })
})

describe("the types with the app's own events", () => {
  it('add them to the built-in ones', () => {
    type R = Registry<Custom>
    holds<Same<EventName<R>, EventName | 'invoice/paid'>>()
    holds<Same<EventData<'invoice/paid', R>, { business_uid: string; total: number }>>()
    holds<Same<TokensOf<'invoice/paid', R>, 'business'>>()
    holds<Same<MarketplaceEvent<'invoice/paid', R>['entity_name'], 'invoice'>>()
    holds<Same<Extract<AnyEvent<R>, { name: 'invoice/paid' }>['data']['total'], number>>()
    holds<Same<EventData<'app_subscription/installed', R>, EventData<'app_subscription/installed'>>>()
    const registry: R = createRegistry(customEvents)
    expect(registry['invoice/paid'].entity_name).toBe('invoice')
  })

  it('add nothing when there are none', () => {
    const registry: Registry = createRegistry()
    expect(holds<Same<EventName<Registry>, EventName>>()).toBe(true)
    expect(Object.keys(registry)).toEqual(Object.keys(EVENTS))
  })

  it('refuse unknown tokens, and a subject that reads a field that its data do not have', () => {
    const event = { entity_name: 'a', event_type: 'b', data: z.object({ a: z.string() }) } as const
    // @ts-expect-error no such kind of token
    const badToken = defineEvent({ ...event, tokens: ['admin'] })
    // @ts-expect-error no such field in data
    const badSubject = defineEvent({ ...event, tokens: ['app'], subject: (data) => ({ app: data.b }) })
    expect(() => createRegistry({ badToken })).toThrow('badToken')
    expect(badSubject.tokens).toEqual(['app'])
  })
})

describe('the type of a record', () => {
  it('fits the store, and guarantees none of the optional fields', () => {
    const parsed = parseRecord(record())
    if (parsed === undefined) throw new Error('unreachable')
    const stored: NonNullable<Subscription['record']> = parsed
    holds<Same<SubscriptionRecord['purchase_price'], string | number | null | undefined>>()
    holds<Same<SubscriptionRecord['is_active'], boolean | null | undefined>>()
    // @ts-expect-error a price may be a number, or not there
    const price: string = parsed.purchase_price
    expect([stored.uid, price]).toEqual(['s', 10])
  })

  it('is undefined for a value that is not a record', () => {
    for (const value of [
      null,
      undefined,
      'text',
      [],
      [record()],
      {},
      { ...record(), purchase_state: null },
    ]) {
      expect(parseRecord(value)).toBeUndefined()
    }
  })
})

function appOf(event: AnyEvent): string | undefined {
  switch (event.name) {
    case 'application/installed':
    case 'application/uninstalled':
      return event.data.app_code_name
    case 'app_subscription/installed':
    case 'app_subscription/uninstalled':
      return event.data.app_id
    default:
      return undefined
  }
}

function record() {
  return {
    uid: 's',
    business_uid: 'b',
    purchasable_uid: 'p',
    purchase_state: 'purchased',
    purchase_price: 10,
  }
}
