import { describe, expect, it } from '@jest/globals'
import type { Hint, Store } from '../../lib/store/port/store.js'
import { ENGINE_NAMES, useEngine } from '../support/engines/engines.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { eventOf } from '../support/events.js'

const engines = Object.fromEntries(ENGINE_NAMES.map((name) => [name, useEngine(name)]))

describe('the cost of a batch of deliveries', () => {
  it('is one notification for the journal and one for each business', async () => {
    const { store } = await openStoreWithSql('sqlite::memory:')
    const hints: Hint[] = []
    store.subscribe((hint) => void hints.push(hint))
    await acceptAtOnce(store, 100)
    expect(hints).toEqual([{ kind: 'requested', businessUid: 'b1' }, { kind: 'journal' }])
  })
})

describe.each(ENGINE_NAMES)('a text in the store on %s', (name) => {
  it.each([
    '$$ $1 $mw$',
    `' " \\ \\' "" E'\\\\x'`,
    '; -- /* */ %s ? :a',
    'ü 漢 😀 \u007f \u2028',
    '\\u0000 {"a":"\\u0024"}',
  ])('stays unchanged: %j', async (text) => {
    const { store } = await openStoreWithSql(await addressOf(name))
    const event = eventOf(`s ${text}`, `b ${text}`)
    await store.accept([{ ...event, payload: JSON.stringify({ text }) }])
    expect(await store.listEntries({})).toMatchObject([
      { payload: { text }, subscriptionUid: `s ${text}`, businessUid: `b ${text}` },
    ])
    expect(await store.subscriptionsOf(`b ${text}`)).toMatchObject([{ subscriptionUid: `s ${text}` }])
  })
})

function addressOf(name: string): Promise<string> {
  return (engines[name] as (typeof engines)[string]).freshAddress()
}

async function acceptAtOnce(store: Store, count: number) {
  await Promise.all(Array.from({ length: count }, (_, n) => store.accept([eventOf(`s${n}`)])))
}
