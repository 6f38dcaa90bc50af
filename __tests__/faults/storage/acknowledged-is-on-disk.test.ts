import '../../support/machine/failing-disk.js'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from '@jest/globals'
import type { Decision } from '../../../lib/index.js'
import type { Simulator } from '../../../lib/testing/index.js'
import { temporaryFolder } from '../../support/clean-up.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { notice } from '../../support/events.js'
import { disk } from '../../support/machine/failing-disk.js'
import { canTrace, readTrace, type SystemCall, traced } from '../../support/machine/system-calls.js'
import type { ChildSettings } from '../../support/receiving/receiver-child.js'
import { loadReceiver, type ReceiverProcess } from '../../support/receiving/receiver-process.js'
import { createScene, deliver, startPlatform } from '../../support/scene.js'
import { until } from '../../support/until.js'

afterEach(() => {
  disk.syncsFail = false
})

describe.each(ENGINE_NAMES)('C1, C2, C3 a receiver on %s that is killed at any moment', (engineName) => {
  const engine = useEngine(engineName)
  const ROUNDS = 5
  const BUSINESSES = Array.from({ length: 12 }, (_, i) => `business-${i}`)

  it('has every acknowledged delivery in its journal, and finishes its pending work after a restart', async () => {
    const platform = await startPlatform()
    const settings = settingsFor(platform, await engine.freshAddress())
    const uids = BUSINESSES.map((business_uid) => platform.purchase({ business_uid, payment: 'failed' }).uid)
    platform.faults.add({ on: 'read', kind: 'slow', ms: [0, 40] })
    platform.faults.add({ on: 'read', kind: 'status', status: 500, probability: 0.2 })
    const acknowledged = new Set<string>()
    // The platform has changed, but the delivery of that change was not acknowledged, so the sender repeats it.
    const unsure = new Set<number>(uids.keys())
    let receiver = loadReceiver(settings)

    for (let round = 1; round <= ROUNDS; round++) {
      await receiver.begin()
      expect(await missingIn(receiver, acknowledged)).toEqual([])
      const next = loadReceiver(settings)
      // The last process cannot read the subscriptions of its deliveries.
      if (round === ROUNDS) platform.faults.add({ on: 'read', kind: 'status', status: 500 })
      await sendUntilKilled(receiver, round)
      receiver = next
    }
    expect(acknowledged.size).toBeGreaterThan(ROUNDS)

    platform.faults.clear()
    await receiver.begin()
    expect(await missingIn(receiver, acknowledged)).toEqual([])
    const decisions = await until('every requested read is done', () => settledDecisions(receiver), 15_000)
    const sure = [...uids.keys()].filter((i) => !unsure.has(i))
    expect(sure.length).toBeGreaterThanOrEqual(BUSINESSES.length - 1)
    expect(sure.map((i) => [BUSINESSES[i], decisions[i]?.entitled])).toEqual(
      sure.map((i) => [
        BUSINESSES[i],
        platform.subscription(uids[i] as string)?.purchase_state === 'purchased',
      ]),
    )

    /**
     * Eight senders at once, and one in the last round. They send until a random number of replies has come, drawn anew
     * for each round.
     */
    async function sendUntilKilled(target: ReceiverProcess, round: number) {
      const count = round === ROUNDS ? 1 : 8
      const enough = (round === ROUNDS ? BUSINESSES.length : 1) + Math.floor(Math.random() * 25)
      let replies = 0

      async function send(i: number): Promise<boolean> {
        const uid = uids[i] as string
        unsure.add(i)
        const reply = await deliver(target.target(), notice(BUSINESSES[i] as string, uid)).catch(
          () => undefined,
        )
        if (!reply) return false
        expect(reply.status).toBe(200)
        acknowledged.add(reply.id)
        unsure.delete(i)
        // The kill comes during a turn of the event loop, or some microseconds into the next one.
        if (++replies === enough) {
          if (round % 2) target.signal('SIGKILL')
          else setImmediate(() => target.signal('SIGKILL'))
        }
        return true
      }

      async function sendAll(sender: number) {
        // Each sender has its own businesses, so that no later delivery can replace an earlier one.
        const own = [...uids.keys()].filter((i) => i % count === sender)
        for (const i of own) if (unsure.has(i) && !(await send(i))) return
        for (let n = round; ; n++) {
          const i = own[n % own.length] as number
          const uid = uids[i] as string
          if (platform.subscription(uid)?.purchase_state === 'purchased') platform.paymentIssue(uid)
          else platform.confirmPayment(uid)
          if (!(await send(i))) return
        }
      }
      await Promise.all(Array.from({ length: count }, (_, sender) => sendAll(sender)))
      expect(await target.ended).toMatchObject({ signal: 'SIGKILL' })
    }

    async function settledDecisions(of: ReceiverProcess) {
      const all = await of.get<Decision[]>(`/decisions?of=${BUSINESSES}`)
      const isSettled = all.every((each) => each.subscriptions.every(({ pending }) => !pending))
      return isSettled && all
    }
  }, 60_000)
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
    const settings = { ...settingsFor(platform, `sqlite:${join(folder, 'm.db')}`), works: false }
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
  }, 40_000)
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

function settingsFor({ baseUrl, authUrl }: Simulator, store: string): ChildSettings {
  return { store, baseUrl, authUrl, works: true, handler: 'returns', closeTimeoutMs: 500, leaseMs: 1_000 }
}

async function missingIn(receiver: ReceiverProcess, acknowledged: ReadonlySet<string>): Promise<string[]> {
  const entries = await receiver.get<{ id: string }[]>('/journal')
  const kept = new Set(entries.map(({ id }) => id))
  return [...acknowledged].filter((id) => !kept.has(id))
}

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
