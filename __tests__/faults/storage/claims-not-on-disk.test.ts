import '../../support/machine/failing-disk.js'
import { join } from 'node:path'
import { afterEach, expect, it } from '@jest/globals'
import { MINUTE } from '../../../lib/base/clock.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { EVERY_TOPIC, handling } from '../../support/conformance/lab.js'
import { storeAt } from '../../support/engines/sqlite-drivers.js'
import { eventOf } from '../../support/events.js'
import { disk } from '../../support/machine/failing-disk.js'
import { jumpingClock } from '../../support/machine/jumping-clock.js'

const REFUSED = { code: 'store_unavailable', message: expect.stringContaining('sync') }
const ALONE = { leaseMs: MINUTE, topics: EVERY_TOPIC, exceptKeys: [] }
const ANY = { ...ALONE, limit: 10, entryLimit: 10 }

afterEach(() => {
  disk.syncsFail = false
})

it('C95 a claim whose sync fails is returned: no handler was called, so nothing becomes suspect and nothing counts', async () => {
  const { store, jump } = await opened()
  disk.syncsFail = true
  for (let i = 0; i < 6; i++) await expect(store.claimLanes(ANY)).rejects.toMatchObject(REFUSED)
  disk.syncsFail = false
  const [lane] = await store.claimLanes(ANY)
  expect(lane).toMatchObject({ lapses: 0, entries: [{ attempt: 1 }] })
  jump(2 * MINUTE)
  expect(await store.dueSuspect({ ...ALONE, kinds: ['lane'] })).toBe('lane')

  // Now the lease of a process that ended has run out.
  disk.syncsFail = true
  for (let i = 0; i < 6; i++) {
    await expect(store.claimSuspectLane(ALONE)).rejects.toMatchObject(REFUSED)
    jump(2 * MINUTE)
  }
  disk.syncsFail = false
  expect(await store.claimSuspectLane(ALONE)).toMatchObject({ lapses: 0, entries: [{ attempt: 1 }] })
})

async function opened() {
  const { clock, jump } = jumpingClock()
  const { store } = storeAt(join(temporaryFolder(), 'm.db'), undefined, clock)
  await store.open()
  await handling(store, EVERY_TOPIC)
  await store.accept([eventOf('s1')])
  return { store, jump }
}
