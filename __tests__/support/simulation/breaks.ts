import { sql } from '../../../lib/store/sql/sql.js'
import type { Database } from './database.js'
import type { Promised } from './oracle.js'
import type { Profile } from './profile.js'
import type { Break } from './run.js'

/** A way to break a promise, and the kind of world that detects the break soonest. */
export type Control = [what: string, promised: Promised, broken: Break, tilt?: Partial<Profile>]

const STEADY = { callFaults: 0, lies: false, ties: false, latenciesMs: [10, 300, 3_000], lagsMs: [0] }

/** For each promise, ways to break it that some world must detect. */
export function breaksOf({ change }: Pick<Database, 'change'>): Control[] {
  return [
    [
      'a store that sometimes acknowledges before it has written',
      'acknowledged is stored',
      (store) => {
        let count = 0
        return { accept: (events) => (++count % 5 === 0 ? Promise.resolve() : store.accept(events)) }
      },
    ],
    [
      'a store that writes the event and loses its refresh request',
      'acknowledged is stored',
      (store) => ({ accept: (events) => store.accept(events.map((event) => ({ ...event, refresh: null }))) }),
    ],
    [
      'a read that settles requests made while it was under way',
      'store equals platform',
      (store) => ({
        async finishRead(claim, finish) {
          const [latest] = await store.subscriptionsNamed([claim.id])
          return store.finishRead({ ...claim, generation: latest?.generation ?? claim.generation }, finish)
        },
      }),
      {
        isLossy: false,
        races: 0.5,
        steps: 6,
        durationMs: 5_000,
        reconcileEveryMs: 86_400_000,
        maxStaleMs: 259_200_000,
        platform: STEADY,
      },
    ],
    [
      'a reader that gives up after a failure',
      'store equals platform',
      (store) => ({
        finishRead: (claim, finish) =>
          store.finishRead(claim, finish.failure ? { ...finish, nextInMs: null } : finish),
      }),
    ],
    [
      'a store that takes the last install event to arrive as the last to happen',
      'store equals platform',
      (store) => ({
        accept: (events) =>
          store.accept(
            events.map(({ refresh, ...event }) => {
              const install = refresh?.kind === 'business' &&
                refresh.install && { ...refresh.install, at: null }
              return { ...event, refresh: install ? { ...refresh, install } : refresh }
            }),
          ),
      }),
      {
        steps: 100,
        businesses: 3,
        instances: 1,
        isLossy: true,
        durationMs: 60_000,
        races: 0,
        disasters: 0,
        platform: STEADY,
      },
    ],
    [
      'a store that writes purchased after every read',
      'only records that the platform showed',
      (store) => ({
        finishRead: (claim, finish) => {
          if (finish.found?.record) finish.found.record.purchase_state = 'purchased'
          return store.finishRead(claim, finish)
        },
      }),
    ],
    [
      'a store that lets an older record replace a newer one',
      'updated_at never goes back',
      (store) => ({
        async claimReads(options) {
          const claims = await store.claimReads(options)
          return claims.map((claim) => {
            const { record } = claim.subscription
            if (!record) return claim
            return {
              ...claim,
              subscription: { ...claim.subscription, record: { ...record, updated_at: null } },
            }
          })
        },
      }),
      {
        steps: 40,
        businesses: 1,
        durationMs: 30_000,
        platform: { ...STEADY, callFaults: 0.5, latenciesMs: [5] },
      },
    ],
    [
      'a store that ignores the fence of a read',
      'updated_at never goes back',
      (store) => ({
        async finishRead(claim, finish) {
          await change(
            sql`update subscriptions set lease_token = ${claim.leaseToken} where subscription_uid = ${claim.id}`,
          )
          return store.finishRead(claim, finish)
        },
      }),
      {
        races: 0.5,
        steps: 12,
        businesses: 1,
        durationMs: 120_000,
        instances: 3,
        disasters: 8,
        leaseMs: 5_000,
        platform: STEADY,
      },
    ],
    [
      'a store that loses a change',
      'changes reach every handler',
      (store) => ({
        finishRead: (claim, { changes: _lost, ...finish }) => store.finishRead(claim, finish),
      }),
    ],
    [
      'a dispatcher that does not retry',
      'changes reach every handler',
      (store) => ({
        finishLanes: (finishes) =>
          store.finishLanes(
            finishes.map((finish) => ({
              ...finish,
              results: finish.results.map((each) => ({ ...each, result: { kind: 'done' } })),
            })),
          ),
      }),
    ],
    [
      'a store that trusts the payload of a delivery',
      'entitled only while the platform shows it',
      (store) => ({
        async accept(events) {
          await store.accept(events)
          for (const { payload, subscriptionUid } of events) {
            const { data } = JSON.parse(payload)
            if (!subscriptionUid || !data.purchase_state) continue
            await change(sql`
              update subscriptions
              set record = ${JSON.stringify(data)}, state = ${data.purchase_state}, unread = 0, read_at = 4e12
              where subscription_uid = ${subscriptionUid}`)
          }
        },
      }),
    ],
    [
      'an answer whose age is not checked',
      'entitled only while the platform shows it',
      (store) => ({
        subscriptionsOf: async (business) =>
          (await store.subscriptionsOf(business)).map((each) => ({ ...each, readAt: each.readAt && 4e12 })),
      }),
      {
        isLossy: false,
        races: 0,
        disasters: 0,
        durationMs: 600_000,
        maxStaleMs: 20_000,
        instances: 1,
        leaseMs: 5_000,
        pollMs: 60_000,
        reconcileEveryMs: 86_400_000,
      },
    ],
    [
      'an answer that is never reloaded',
      'answers follow the store',
      (store) => {
        const first = new Map<string, ReturnType<typeof store.subscriptionsOf>>()
        return {
          async subscriptionsOf(business) {
            const answer = first.get(business) ?? store.subscriptionsOf(business)
            if ((await answer).length > 0) first.set(business, answer)
            return answer
          },
        }
      },
    ],
    [
      'a claim that takes leased entries',
      'one handler at once',
      (store) => ({
        async claimLanes(options) {
          await change(sql`update lanes set due_at = 0, lease_token = null`)
          return store.claimLanes(options)
        },
      }),
    ],
    [
      'a claim that hands over the newest entry of a lane first',
      'changes in order',
      (store) => ({
        async claimLanes(options) {
          const claims = await store.claimLanes(options)
          return claims.map((claim) => ({ ...claim, entries: claim.entries.toReversed() }))
        },
      }),
    ],
  ]
}
