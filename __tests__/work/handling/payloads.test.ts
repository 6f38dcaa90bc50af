import { describe, expect, it } from '@jest/globals'
import type { Entry, Subscription } from '../../../lib/store/port/store.js'
import { createPayloads } from '../../../lib/work/handling/payloads.js'
import type { Unit } from '../../../lib/work/handling/units.js'

const CHANGE = { business_uid: 'b1', from: null, to: 'purchased' }

describe('the payload of a change', () => {
  it('says whether the business of the change may use the app, by its subscriptions now', async () => {
    for (const entitled of [true, false]) {
      const asked: string[] = []
      const { ofChange } = payloads({ entitled, known: true, meaning: '' }, asked)
      expect(await ofChange()).toEqual({ ...CHANGE, entitled })
      expect(asked).toEqual(['b1'])
    }
  })

  it('is an error to try again while the answer is not known, with what is not known', async () => {
    const { ofChange } = payloads({ entitled: false, known: false, meaning: 'the read is out of date' })
    await expect(ofChange()).rejects.toMatchObject({
      code: 'entitlement_unknown',
      retryable: true,
      message: 'Cannot tell whether the business is entitled: the read is out of date',
    })
  })
})

describe('the payload of a delivery that was not recognised', () => {
  it('has the envelope, or each of several, and why', () => {
    const { payloadOf } = payloads({ entitled: false, known: true, meaning: '' })
    const entry = { id: 'e1', kind: 'unrecognised', name: '', receivedAt: 0 } as const
    const given = (value: unknown, issues: string[] | null) =>
      payloadOf([{ ...entry, payload: JSON.stringify(value), issues } as Entry])
    const common = { id: 'e1', receivedAt: '1970-01-01T00:00:00.000Z' }
    expect(given({ a: 1 }, ['odd'])).toEqual({
      ...{ ...common, envelope: { a: 1 }, envelopes: [{ a: 1 }], issues: ['odd'] },
    })
    expect(given([1, 2], null)).toEqual({ ...common, envelope: [1, 2], envelopes: [1, 2], issues: [] })
  })
})

function payloads(answer: { entitled: boolean; known: boolean; meaning: string }, asked: string[] = []) {
  const payloadOf = createPayloads({
    classify: () => ({ recognised: false }),
    store: {
      async subscriptionsOf(businessUid): Promise<Subscription[]> {
        asked.push(businessUid)
        return []
      },
    },
    answerOf: () => answer,
    entitlementChangeOf: async () => undefined,
  })
  const entry = { id: 'e1', kind: 'change', name: '', payload: JSON.stringify(CHANGE), issues: null }
  return {
    payloadOf,
    ofChange: async () => payloadOf([{ ...entry, receivedAt: 0 }] as unknown as Unit),
  }
}
