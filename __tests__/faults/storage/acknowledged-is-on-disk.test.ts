import '../../support/machine/failing-disk.js'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import { temporaryFolder } from '../../support/clean-up.js'
import { notice } from '../../support/events.js'
import { disk } from '../../support/machine/failing-disk.js'
import { canTrace, readTrace, type SystemCall, traced } from '../../support/machine/system-calls.js'
import { childSettings, loadReceiver } from '../../support/receiving/receiver-process.js'
import { createScene, deliver, startPlatform } from '../../support/scene.js'
import { until } from '../../support/until.js'

afterEach(() => {
  disk.syncsFail = false
})

const tracing = canTrace()

describe('C4 a reply that acknowledges', () => {
  const title = 'is sent after a sync of the WAL that followed the commit'
  if (!tracing) {
    it.skip(`${title} (NOT TESTED: strace cannot be used here)`, () => {})
    return
  }

  it(title, async () => {
    const platform = await startPlatform()
    const folder = temporaryFolder()
    const settings = childSettings(platform, `sqlite:${join(folder, 'm.db')}`, { works: false })
    const file = join(folder, 'trace')
    const receiver = loadReceiver(settings, traced(file))
    await receiver.begin()
    const ids: string[] = []
    for (let burst = 0; burst < 8; burst++) {
      const replies = await Promise.all(
        Array.from({ length: 1 + burst }, (_, i) =>
          deliver(receiver.target(), notice('b1', `s${burst}-${i}`)),
        ),
      )
      ids.push(...replies.map(({ id }) => id))
    }
    receiver.signal('SIGTERM')
    await receiver.ended

    const calls = readTrace(file)
    const wal = `${settings.store.slice('sqlite:'.length)}-wal`
    for (const id of ids) {
      const [commit, reply] = [commitOf(id, calls, wal), replyTo(id, calls)]
      const sync = calls.find(
        ({ name, file, result, begun, ended }) =>
          /^f(data)?sync$/.test(name) &&
          file === wal &&
          result === 0 &&
          begun > commit.ended &&
          ended < reply.begun,
      )
      expect({ id, commit: commit.begun, sync: sync?.begun, reply: reply.begun }).toEqual({
        id,
        commit: expect.any(Number),
        sync: expect.any(Number),
        reply: expect.any(Number),
      })
    }
  })
})

describe('C6 while the disk cannot be synced', () => {
  it('nothing is acknowledged, known answers are still given, and everything recovers without a restart', async () => {
    const file = join(temporaryFolder(), 'm.db')
    const { platform, marketplace, deliver } = await createScene({ store: `sqlite:${file}` })
    const first = platform.purchase({ business_uid: 'b1', payment: 'succeeded' })
    await platform.settled()
    expect(await marketplace.isEntitled('b1')).toBe(true)

    disk.syncsFail = true
    for (let i = 0; i < 5; i++) {
      const { status, headers, body } = await deliver(notice('b1', first.uid))
      expect([status, body.code, body.received]).toEqual([503, 'delivery_not_accepted', undefined])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      expect(await marketplace.isEntitled('b1')).toBe(true)
      expect(await marketplace.isEntitled('b2')).toBe(false)
    }
    await expect(
      marketplace.subscriptions.track({ subscriptionUid: 's9', businessUid: 'b9' }),
    ).rejects.toMatchObject({
      code: 'store_unavailable',
    })

    disk.syncsFail = false
    const { status, id } = await deliver(notice('b1', first.uid))
    expect(status).toBe(200)
    expect((await marketplace.journal.list()).map((entry) => entry.id)).toContain(id)
    platform.cancel(first.uid)
    await platform.settled()
    // Events that follow each other closely share a read.
    await until('the end is seen', async () => !(await marketplace.isEntitled('b1')))
    await until('health is ok', async () => (await marketplace.health()).status === 'ok')
  })
})

/**
 * The write that ends the transaction which wrote `id` into the WAL. A frame has a header of 24 bytes and a page. In
 * the header, bytes 4 to 7 are the size of the database if the frame is the last of its transaction, and otherwise 0.
 */
function commitOf(id: string, calls: readonly SystemCall[], wal: string): SystemCall {
  const frames = calls.filter(({ name, file }) => name === 'pwrite64' && file === wal)
  const first = frames.findIndex(({ data }) => data.includes(id))
  const header = frames.findIndex(
    ({ data }, at) => at >= first - 1 && data.length === 24 && data.readUInt32BE(4) > 0,
  )
  const page = frames[header + 1]
  if (first < 0 || header < 0 || !page) throw new Error(`the commit of ${id} is not in the trace`)
  return page
}

function replyTo(id: string, calls: readonly SystemCall[]): SystemCall {
  const reply = calls.find(({ data }) => data.includes('HTTP/1.1 200') && data.includes(id))
  if (!reply) throw new Error(`the reply for ${id} is not in the trace`)
  return reply
}
