import { INTERNALS, type Internals } from '../../lib/options.js'

/** Durations that are no options, such as short leases: `createMarketplace({ …, ...internals({ leaseMs: 1_000 }) })`. */
export function internals(given: Partial<Internals>): object {
  return { [INTERNALS]: given }
}
