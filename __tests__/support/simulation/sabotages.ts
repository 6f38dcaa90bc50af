import { sql } from '../../../lib/store/sql/sql.js'
import type { Database } from '../world/database.js'
import type { Control } from '../world/sabotage.js'
import type { Profile } from './profile.js'

const STEADY = { callFaults: 0, lies: false, ties: false, latenciesMs: [10, 300, 3_000], lagsMs: [0] }

/** Sabotages that some world of seconds must detect; `tilt` is the kind of world that detects it soonest. */
export function sabotagesOfSeconds({
  change,
}: Pick<Database, 'change'>): (Control & { tilt?: Partial<Profile> })[] {
  return [
    {
      what: 'a store that sometimes acknowledges before it has written',
      promised: 'stored',
      store: (store) => {
        let count = 0
        return { accept: (events) => (++count % 5 === 0 ? Promise.resolve([]) : store.accept(events)) }
      },
    },
    {
      what: 'a store that writes the event and loses its refresh request',
      promised: 'stored',
      store: (store) => ({
        accept: (events) => store.accept(events.map((event) => ({ ...event, refresh: null }))),
      }),
    },
    {
      what: 'a read that settles requests made while it was under way',
      promised: 'equal',
      tilt: {
        isLossy: false,
        races: 0.5,
        steps: 6,
        durationMs: 5_000,
        reconcileEveryMs: 86_400_000,
        maxStaleMs: 259_200_000,
        platform: STEADY,
      },
      store: (store) => ({
        async finishRead(claim, finish) {
          const [latest] = await store.subscriptionsNamed([claim.id])
          return store.finishRead({ ...claim, generation: latest?.generation ?? claim.generation }, finish)
        },
      }),
    },
    {
      what: 'a reader that gives up after a failure',
      promised: 'equal',
      store: (store) => ({
        finishRead: (claim, finish) =>
          store.finishRead(claim, finish.failure ? { ...finish, nextInMs: null } : finish),
      }),
    },
    {
      what: 'a store that takes the last install event to arrive as the last to happen',
      promised: 'equal',
      tilt: {
        steps: 100,
        businesses: 3,
        instances: 1,
        isLossy: true,
        durationMs: 60_000,
        races: 0,
        disasters: 0,
        platform: STEADY,
      },
      store: (store) => ({
        accept: (events) =>
          store.accept(
            events.map(({ refresh, ...event }) => {
              const install = refresh?.kind === 'business' &&
                refresh.install && { ...refresh.install, at: null }
              return { ...event, refresh: install ? { ...refresh, install } : refresh }
            }),
          ),
      }),
    },
    {
      what: 'a store that writes purchased after every read',
      promised: 'shown',
      store: (store) => ({
        finishRead: (claim, finish) => {
          if (finish.found?.record) finish.found.record.purchase_state = 'purchased'
          return store.finishRead(claim, finish)
        },
      }),
    },
    {
      what: 'a store that lets an older record replace a newer one',
      promised: 'onward',
      tilt: {
        steps: 40,
        businesses: 1,
        durationMs: 30_000,
        platform: { ...STEADY, callFaults: 0.5, latenciesMs: [5] },
      },
      store: (store) => ({
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
    },
    {
      what: 'a store that ignores the fence of a read',
      promised: 'onward',
      tilt: {
        races: 0.5,
        steps: 12,
        businesses: 1,
        durationMs: 120_000,
        instances: 3,
        disasters: 8,
        leaseMs: 5_000,
        platform: STEADY,
      },
      store: (store) => ({
        async finishRead(claim, finish) {
          await change(
            sql`update subscriptions set lease_token = ${claim.leaseToken} where subscription_uid = ${claim.id}`,
          )
          return store.finishRead(claim, finish)
        },
      }),
    },
    {
      what: 'a store that loses a change',
      promised: 'handled',
      store: (store) => ({
        finishRead: (claim, { changes: _lost, ...finish }) => store.finishRead(claim, finish),
      }),
    },
    {
      what: 'a dispatcher that does not retry',
      promised: 'handled',
      store: (store) => ({
        finishLanes: (finishes) =>
          store.finishLanes(
            finishes.map((finish) => ({
              ...finish,
              results: finish.results.map((each) => ({ ...each, result: { kind: 'done' } })),
            })),
          ),
      }),
    },
    {
      what: 'a store that trusts the payload of a delivery',
      promised: 'entitled',
      store: (store) => ({
        async accept(events) {
          const unstored = await store.accept(events)
          for (const { payload, subscriptionUid } of events) {
            const { data } = JSON.parse(payload)
            if (!subscriptionUid || !data.purchase_state) continue
            await change(sql`
          update subscriptions
          set record = ${JSON.stringify(data)}, state = ${data.purchase_state}, unread = 0, read_at = 4e12
          where subscription_uid = ${subscriptionUid}`)
          }
          return unstored
        },
      }),
    },
    {
      what: 'an answer whose age is not checked',
      promised: 'entitled',
      tilt: {
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
      store: (store) => ({
        subscriptionsOf: async (business) =>
          (await store.subscriptionsOf(business)).map((each) => ({ ...each, readAt: each.readAt && 4e12 })),
      }),
    },
    {
      what: 'an answer that is never reloaded',
      promised: 'follow',
      store: (store) => {
        const first = new Map<string, ReturnType<typeof store.subscriptionsOf>>()
        return {
          async subscriptionsOf(business) {
            const answer = first.get(business) ?? store.subscriptionsOf(business)
            if ((await answer).length > 0) first.set(business, answer)
            return answer
          },
        }
      },
    },
    {
      what: 'a claim that takes leased entries',
      promised: 'apart',
      store: (store) => ({
        async claimLanes(options) {
          await change(sql`update lanes set due_at = 0, lease_token = null`)
          return store.claimLanes(options)
        },
      }),
    },
    {
      what: 'a claim that hands over the newest entry of a lane first',
      promised: 'order',
      store: (store) => ({
        async claimLanes(options) {
          const claims = await store.claimLanes(options)
          return claims.map((claim) => ({ ...claim, entries: claim.entries.toReversed() }))
        },
      }),
    },
    {
      what: 'answers that never come, so that none is checked',
      promised: 'checked',
      marketplace: () => ({ isEntitled: () => new Promise<boolean>(() => {}) }),
    },
  ]
}
