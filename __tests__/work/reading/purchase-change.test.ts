import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../../lib/base/clock.js'
import type { SubscriptionRecord } from '../../../lib/base/record.js'
import type { ReadClaim } from '../../../lib/store/port/store.js'
import { changeOf } from '../../../lib/work/reading/purchase-change.js'

const OURS = { item: 'ours', state: 'purchased' }
const OTHER = { item: 'other', state: null }

describe('the cause of a change', () => {
  it('is import if the item is the same, and only app.purchasableUid has changed', () => {
    const [was, is] = [
      { ...OTHER, item: 'x' },
      { ...OURS, item: 'x' },
    ]
    expect(change(was, is)).toMatchObject({ from: null, to: 'purchased', cause: 'import' })
    expect(change(is, was)).toMatchObject({
      from: 'purchased',
      to: null,
      gone: 'other_item',
      cause: 'import',
    })
  })

  it('is that of the read if the platform shows another item', () => {
    expect(change(OTHER, OURS)).toMatchObject({ from: null, to: 'purchased', cause: 'event' })
    expect(change(OURS, OTHER)).toMatchObject({
      from: 'purchased',
      to: null,
      gone: 'other_item',
      cause: 'event',
    })
  })
})

type Shown = { item: string; state: string | null }

/** The change that a read writes, requested by an event. */
function change(was: Shown, is: Shown) {
  const of = (item: string) =>
    ({ business_uid: 'b1', purchasable_uid: item }) as unknown as SubscriptionRecord
  const subscription = { businessUid: 'b1', state: was.state, gone: null, record: of(was.item) }
  const claim = { id: 's1', cause: 'event', subscription } as ReadClaim
  const move = { businessUid: 'b1', from: was.state, to: is.state, record: of(is.item) }
  const written = changeOf(
    claim,
    move,
    { found: { record: of(is.item), state: is.state, gone: null } },
    systemClock,
  )
  const payload = JSON.parse(written.payload)
  expect(written.cause).toBe(payload.cause)
  return payload
}
