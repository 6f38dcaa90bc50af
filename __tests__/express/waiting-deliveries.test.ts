import { gzipSync } from 'node:zlib'
import { describe, expect, it } from '@jest/globals'
import { systemClock } from '../../lib/base/clock.js'
import { storeFor } from '../../lib/store-option.js'
import { storeOption } from '../support/engines/store-option.js'
import { memory } from '../support/machine/memory.js'
import { createScene } from '../support/scene.js'
import { gate, until } from '../support/until.js'

const NOTICE = { subscription_uid: 's1', business_id: 'b1' }
const MANY = 60
const DEEP = '['.repeat(1_800) + ']'.repeat(1_800)
/** Each has some 64 kB, and as a value twenty times as much. */
const BODIES = {
  'a field nested deeply': envelope(`[${Array(16).fill(DEEP)}]`),
  'a field of empty objects': envelope(`[${Array(20_000).fill('{}')}]`),
  'elements of a long array, each nested deeply': `[${Array(17).fill(envelope(DEEP))}]`,
}
/** No deadline ends: a slow machine may need seconds for all that is sent. */
const PATIENT = { ...systemClock, setTimeout: () => undefined, clearTimeout() {} }
const CHECKS = [
  ['without verifyDelivery', undefined],
  ['that verifyDelivery checks', 'held'],
] as const

describe.each(CHECKS)('B25 deliveries %s', (_, check) => {
  it.each(Object.entries(BODIES))(
    'take no more memory than their text while they wait: %s',
    async (_what, body) => {
      const hold = gate()
      let waiting = 0
      const wait = () => {
        waiting++
        return hold.opened
      }
      const store = storeFor('sqlite::memory:', systemClock)
      const { target, marketplace } = await createScene({
        store: storeOption({
          ...store,
          accept: (events) => (check ? store.accept(events) : wait().then(() => store.accept(events))),
        }),
        ...(check && { verifyDelivery: () => wait().then(() => true) }),
        worker: false,
        clock: PATIENT,
      })
      await marketplace.start()
      const before = memory()
      const zipped = gzipSync(body)
      const replies = Array.from({ length: MANY }, () =>
        fetch(target, { method: 'POST', body: zipped, headers: { 'content-encoding': 'gzip' } }),
      )
      await until('all wait', () => waiting === MANY)
      expect(memory() - before).toBeLessThan(4 * MANY * body.length)
      hold.open()
      for (const reply of replies) expect((await reply).status).toBe(200)
    },
  )
})

function envelope(field: string) {
  const data = `${JSON.stringify(NOTICE).slice(0, -1)},"field":${field}}`
  return `{"entity_name":"purchasable_subscription","event_type":"created","data":${data}}`
}
