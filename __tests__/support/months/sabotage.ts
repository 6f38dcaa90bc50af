import type { Decision, Marketplace } from '../../../lib/index.js'
import type { Sabotage } from './app.js'
import { HOUR } from './durations.js'
import type { FaultName } from './faults.js'
import type { Invariant } from './invariants.js'

/** A broken package, and the world that must detect it: one of a fault, or one without any. */
interface Control {
  what: string
  fault: FaultName | 'none at all'
  /** In a world without faults. */
  instances?: number
  sabotage: Sabotage
}

/** For each invariant, packages that break it. The worlds must detect every one. */
export const SABOTAGES: Record<Invariant, readonly [Control, ...Control[]]> = {
  in: [
    {
      what: 'an answer is cached for ever',
      fault: 'nothing',
      sabotage: cachesAnswers(),
    },
  ],
  honest: [
    {
      what: 'health is always ok',
      fault: 'secretNamed',
      sabotage: disguise((real) => ({
        health: async () => ({ ...(await real.health()), status: 'ok', problems: [] }),
      })),
    },
  ],
  healed: [
    {
      what: 'some buyers never get access',
      fault: 'nothing',
      sabotage: disguise((real) => ({
        explain: async (business) => ({
          ...(await real.explain(business)),
          ...(/^b\d/.test(String(business)) ? { entitled: false } : {}),
        }),
      })),
    },
  ],
  ended: [
    {
      what: 'every fifth event ends without its handler',
      fault: 'nothing',
      sabotage: disguise((real) => {
        let events = 0
        return {
          onAny: (handler) =>
            real.onAny((event, context) => (events++ % 5 === 4 ? undefined : handler(event, context))),
        }
      }),
    },
  ],
  apart: [
    {
      what: 'a change is handed out again while its handler runs',
      fault: 'nothing',
      sabotage: disguise((real) => ({
        onPurchaseChange: (handler) =>
          real.onPurchaseChange(
            async (change, context) =>
              void (await Promise.all([handler(change, context), handler(change, context)])),
          ),
      })),
    },
    {
      what: 'a lease ends while its handler runs',
      fault: 'none at all',
      instances: 3,
      sabotage: {
        store: (real) => ({ ...real, claimLanes: (options) => real.claimLanes({ ...options, leaseMs: 1 }) }),
      },
    },
  ],
  budget: [
    {
      what: 'every call is made five times',
      fault: 'nothing',
      sabotage: {
        fetch: (real) =>
          (async (...args) => {
            for (let i = 0; i < 4; i++) await real(...args)
            return real(...args)
          }) as typeof fetch,
      },
    },
    {
      what: 'a settled subscription is read three times a day',
      fault: 'nothing',
      sabotage: { options: { freshness: { reconcileEveryMs: 8 * HOUR } } },
    },
  ],
  id: [
    {
      what: 'a change gets a new id at every try',
      fault: 'nothing',
      sabotage: disguise((real) => {
        let tries = 0
        return {
          onPurchaseChange: (handler) =>
            real.onPurchaseChange(async (change, context) => {
              await handler({ ...change, id: `try ${tries++}` }, context)
              await handler({ ...change, id: `try ${tries++}` }, context)
            }),
        }
      }),
    },
    {
      what: 'a change gets a new id in each process',
      fault: 'kills',
      sabotage: renamesChanges(),
    },
  ],
  calm: [
    {
      what: 'a customer who does not pay is a problem',
      fault: 'none at all',
      sabotage: disguise((real) => ({
        async health() {
          const found = await real.health()
          const page = await real.subscriptions.list({ limit: 100 })
          return page.some(({ reason }) => reason !== 'purchased') ? { ...found, status: 'degraded' } : found
        },
      })),
    },
  ],
  right: [
    {
      what: 'an answer is cached for ever',
      fault: 'none at all',
      sabotage: cachesAnswers(),
    },
  ],
  open: [
    {
      what: 'every change says that the business is entitled',
      fault: 'none at all',
      sabotage: disguise((real) => ({
        onPurchaseChange: (handler) =>
          real.onPurchaseChange((change, context) => handler({ ...change, entitled: true }, context)),
      })),
    },
  ],
  checked: [
    {
      what: 'health is never ok, so that no promise holds',
      fault: 'nothing',
      sabotage: disguise((real) => ({
        health: async () => ({ ...(await real.health()), status: 'degraded' }),
      })),
    },
    {
      what: 'no handler of changes is called, so that their ids are not compared',
      fault: 'kills',
      sabotage: disguise(() => ({ onPurchaseChange: () => () => {} })),
    },
  ],
}

function disguise(change: (real: Marketplace) => Partial<Marketplace>): Sabotage {
  return { marketplace: (real) => ({ ...real, ...change(real) }) }
}

function cachesAnswers(): Sabotage {
  return disguise((real) => {
    const answers = new Map<string, Decision>()
    return {
      async explain(given) {
        const business = String(given)
        const answer = answers.get(business) ?? (await real.explain(business))
        if (answer.known) answers.set(business, answer)
        return answer
      },
    }
  })
}

function renamesChanges(): Sabotage {
  let processes = 0
  return disguise((real) => {
    const own = `process ${processes++}`
    return {
      onPurchaseChange: (handler) =>
        real.onPurchaseChange((change, context) =>
          handler({ ...change, id: `${own} ${change.id}` }, context),
        ),
    }
  })
}
