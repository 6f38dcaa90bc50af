import { HOUR } from '../../../lib/base/clock.js'
import type { Decision } from '../../../lib/index.js'
import type { Control, Disguise } from '../world/sabotage.js'
import type { FaultName } from './faults.js'

/** Sabotages that a world of months must detect: one with a fault, or one of several instances without any. */
export const SABOTAGES_OF_MONTHS: readonly (Control & {
  fault: FaultName | 'none at all'
  instances?: number
})[] = [
  {
    what: 'an answer is cached for ever',
    promised: 'in',
    fault: 'nothing',
    marketplace: cachesAnswers(),
  },
  {
    what: 'health is always ok',
    promised: 'honest',
    fault: 'secretNamed',
    marketplace: (real) => ({
      health: async () => ({ ...(await real.health()), status: 'ok', problems: [] }),
    }),
  },
  {
    what: 'some buyers never get access',
    promised: 'healed',
    fault: 'nothing',
    marketplace: (real) => ({
      explain: async (business) => ({
        ...(await real.explain(business)),
        ...(/^b\d/.test(String(business)) ? { entitled: false } : {}),
      }),
    }),
  },
  {
    what: 'every fifth event ends without its handler',
    promised: 'ended',
    fault: 'nothing',
    marketplace: (real) => {
      let events = 0
      return {
        onAny: (handler) =>
          real.onAny((event, context) => (events++ % 5 === 4 ? undefined : handler(event, context))),
      }
    },
  },
  {
    what: 'a change is handed out again while its handler runs',
    promised: 'apart',
    fault: 'nothing',
    marketplace: (real) => ({
      onPurchaseChange: (handler) =>
        real.onPurchaseChange(
          async (change, context) =>
            void (await Promise.all([handler(change, context), handler(change, context)])),
        ),
    }),
  },
  {
    what: 'a lease ends while its handler runs',
    promised: 'apart',
    fault: 'none at all',
    instances: 3,
    store: (real) => ({ ...real, claimLanes: (options) => real.claimLanes({ ...options, leaseMs: 1 }) }),
  },
  {
    what: 'every call is made five times',
    promised: 'budget',
    fault: 'nothing',
    fetch: (real) =>
      (async (...args) => {
        for (let i = 0; i < 4; i++) await real(...args)
        return real(...args)
      }) as typeof fetch,
  },
  {
    what: 'a settled subscription is read three times a day',
    promised: 'budget',
    fault: 'nothing',
    options: { freshness: { reconcileEveryMs: 8 * HOUR } },
  },
  {
    what: 'a change gets a new id at every try',
    promised: 'id',
    fault: 'nothing',
    marketplace: (real) => {
      let tries = 0
      return {
        onPurchaseChange: (handler) =>
          real.onPurchaseChange(async (change, context) => {
            await handler({ ...change, id: `try ${tries++}` }, context)
            await handler({ ...change, id: `try ${tries++}` }, context)
          }),
      }
    },
  },
  {
    what: 'a change gets a new id in each process',
    promised: 'id',
    fault: 'kills',
    marketplace: renamesChanges(),
  },
  {
    what: 'a customer who does not pay is a problem',
    promised: 'calm',
    fault: 'none at all',
    marketplace: (real) => ({
      async health() {
        const found = await real.health()
        const page = await real.subscriptions.list({ limit: 100 })
        return page.some(({ reason }) => reason !== 'purchased') ? { ...found, status: 'degraded' } : found
      },
    }),
  },
  {
    what: 'an answer is cached for ever',
    promised: 'right',
    fault: 'none at all',
    marketplace: cachesAnswers(),
  },
  {
    what: 'every change says that the business is entitled',
    promised: 'open',
    fault: 'none at all',
    marketplace: (real) => ({
      onPurchaseChange: (handler) =>
        real.onPurchaseChange((change, context) => handler({ ...change, entitled: true }, context)),
    }),
  },
  {
    what: 'what was never read goes first',
    promised: 'harmless',
    fault: 'sender',
    store: (real) => ({
      claimLanes: (options) => real.claimLanes({ ...options, choose: (due) => due.at(-1) }),
    }),
  },
  {
    what: 'what is beyond the allowance is acknowledged all the same',
    promised: 'harmless',
    fault: 'sender',
    store: (real) => ({ accept: (events) => real.accept(events).catch(() => []) }),
  },
  {
    what: 'health does not say that deliveries were turned away',
    promised: 'honest',
    fault: 'sender',
    store: () => ({ turnedAway: async () => null }),
  },
  {
    what: 'health is never ok, so that no promise holds',
    promised: 'checked',
    fault: 'nothing',
    marketplace: (real) => ({
      health: async () => ({ ...(await real.health()), status: 'degraded' }),
    }),
  },
  {
    what: 'no handler of changes is called, so that their ids are not compared',
    promised: 'checked',
    fault: 'kills',
    marketplace: () => ({ onPurchaseChange: () => () => {} }),
  },
]

function cachesAnswers(): Disguise {
  return (real) => {
    const answers = new Map<string, Decision>()
    return {
      async explain(given) {
        const business = String(given)
        const answer = answers.get(business) ?? (await real.explain(business))
        if (answer.known) answers.set(business, answer)
        return answer
      },
    }
  }
}

function renamesChanges(): Disguise {
  let processes = 0
  return (real) => {
    const own = `process ${processes++}`
    return {
      onPurchaseChange: (handler) =>
        real.onPurchaseChange((change, context) =>
          handler({ ...change, id: `${own} ${change.id}` }, context),
        ),
    }
  }
}
