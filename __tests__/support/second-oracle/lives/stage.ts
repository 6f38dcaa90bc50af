import { internals } from '../../internals.js'
import { createVirtualClock } from '../../machine/virtual-clock.js'
import { type CallFault, createPlatform, type FaultOf, type Reply } from '../../platform/platform.js'
import { CLIENT, OUR_ITEM } from '../../settings.js'
import { createConnector, type Database } from '../../world/database.js'
import { createProcess, type Process } from '../../world/process.js'
import type { Random } from '../../world/random.js'
import type { Sabotage } from '../../world/sabotage.js'
import { createDoors } from '../doors.js'
import { judge } from '../judge.js'
import type { Finding } from '../log.js'
import { createWitness } from '../witness.js'

export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE

export type Stage = Awaited<ReturnType<typeof createStage>>

/** A platform and an app in virtual time, in which a short life of the documents is played. */
export async function createStage(database: Database, sabotage: Sabotage | undefined) {
  const clock = createVirtualClock({ quietTurns: 1 })
  const witness = createWitness(clock)
  const time = witness.clock(clock)
  const findings: Finding[] = []
  const processes: Process[] = []
  const now = { latencyMs: 10, lagMs: 0, fault: (() => undefined) as FaultOf }
  const platform = witness.platform(
    createPlatform({
      clock: time,
      clientSecret: CLIENT.clientSecret,
      faultOf: (call) => now.fault(call),
      latencyMs: () => [now.latencyMs, 0],
      lagMs: () => now.lagMs,
    }),
  )
  await database.begin(time.now)
  const connect = createConnector(time, (wire, clock) => database.storeFor(wire, clock))
  /** Handlers of the app, by topic; each call is kept. */
  const calls: { topic: string; at: number; payload: Record<string, unknown>; attempt: number }[] = []
  let made = 0

  /** Delivers one body, and returns the status. */
  async function deliver(to: Process, body: unknown, secret?: string): Promise<number> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const reply = to.deliver([text], ...(secret === undefined ? [] : [{ secret }]))
    return (await time.until(reply)).status
  }

  function expect(isTrue: boolean, heading: string, message: string) {
    if (!isTrue) findings.push({ at: time.passed(), heading, message })
  }

  /** Explains the answer about a business. The gate and the route must give the same one: docs/gate.md, "The guard". */
  async function explain({ marketplace }: Process, business: string) {
    const decision = await time.until(marketplace.explain(business))
    const doors = createDoors(marketplace)
    const gate = await time.until(doors.gate(business))
    const route = await time.until(doors.route(business))
    const { entitled, known, reason } = await time.until(marketplace.explain(business))
    if (decision.reason !== reason) return decision
    const status = entitled ? 200 : known ? 402 : 503
    expect(gate.status === status, 'The guard', `${reason} gets ${gate.status}, not ${status}`)
    const isSame = route.entitled === entitled && route.known === known
    expect(isSame, 'A front end', `${reason} has entitled ${route.entitled} and known ${route.known}`)
    return decision
  }

  return {
    ...{ time, platform, now, calls, witness, database },
    /** Starts a process; `behave` is what its handlers do. */
    async open(
      settings: Partial<Parameters<typeof createProcess>[0]['settings']> = {},
      behave: (topic: string, attempt: number, signal: AbortSignal) => unknown = () => {},
      store = connect(),
    ) {
      const own = createProcess({
        ...{ time, sabotage, witness, store, fetch: platform.fetch, random: SURELY },
        settings: {
          app: { ...CLIENT, purchasableUid: OUR_ITEM, codeName: 'ours' },
          ...internals({ pollMs: MINUTE }),
          ...settings,
        },
      })
      const { marketplace } = own
      const handler =
        (topic: string) => async (payload: object, context: { attempt: number; signal: AbortSignal }) => {
          const { attempt, signal } = context
          calls.push({ topic, at: time.passed(), payload: payload as Record<string, unknown>, attempt })
          await behave(topic, attempt, signal)
        }
      marketplace.onPurchaseChange(handler('change'))
      marketplace.onEntitlementChange(handler('entitlement'))
      marketplace.onAny(handler('event'))
      marketplace.onUnrecognised(handler('unrecognised'))
      processes.push(own)
      await time.until(marketplace.start())
      await time.advance(SECOND)
      return own
    },
    deliver,
    /** A store for a process that gets no notification of the others. */
    deafStore: () => database.storeFor({ announce: () => {}, watch: () => {} }, time.forProcess()),
    /** A purchase of a new business, which the app has read. */
    async sold(to: Process, business = `b${made++}`, item = OUR_ITEM) {
      const uid = `s${made++}-${business}`
      const bought = platform.set(uid, business, 'purchased', item)
      await deliver(to, notice(bought, 'created'))
      await time.advance(MINUTE)
      return bought
    },
    explain,
    expect,
    /** Everything that was found, also by the judge. */
    async close(): Promise<Finding[]> {
      for (const own of processes) own.kill()
      await time.rest()
      witness.note({ kind: 'end' })
      return [...findings, ...judge(witness.log, { lateMs: MINUTE, storeMs: 0, skewMs: 0, isForged: false })]
    },
  }
}

/** A call of a process that is cut off always fails, at once. */
const SURELY = {
  chance: () => true,
  pick: <T>([first]: readonly T[]) => first as T,
} as unknown as Random

export const notice = (of: { uid: string; business: string; item: string }, event_type = 'update') => ({
  entity_name: 'purchasable_subscription',
  event_type,
  data: { subscription_uid: of.uid, business_id: of.business, purchasable_uid: of.item },
})

export const install = (business: string, at: number, event_type = 'uninstalled') => ({
  entity_name: 'application',
  event_type,
  data: { business_id: business, app_code_name: 'ours', event_time: new Date(at).toISOString() },
})

export type { CallFault, Reply }
