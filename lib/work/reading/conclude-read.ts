import { fullJitter, spread } from '../../base/backoff.js'
import { MINUTE, SECOND } from '../../base/clock.js'
import type { ReadResult } from '../../platform/read-result.js'
import type { ReadClaim } from '../../store/port/store.js'
import { concludeFound } from './conclude-found.js'
import { concludeMissing, concludeRefused } from './conclude-not-shown.js'
import { type ConcludeEnvironment, type Conclusion, readFacts, tryAgain } from './facts.js'

const RETRY_BASE_MS = SECOND
const RETRY_CAP_MS = 5 * MINUTE

/**
 * The conclusion from a read's result: a pure function, with a case for each kind of result. `end-evidence.ts` has the
 * table of ends.
 *
 * The lease makes reads of one subscription follow one another, so of two records with the same `updated_at` the later
 * read wins. An older `updated_at` never replaces a newer one, unless the platform has repeated it for an hour. A
 * subscription that was read once is never given up.
 */
export function concludeRead(claim: ReadClaim, result: ReadResult, env: ConcludeEnvironment): Conclusion {
  const read = readFacts(claim, result, env)
  const { random } = env
  switch (result.kind) {
    case 'found':
      return concludeFound(read, result.record)
    case 'missing':
      return concludeMissing(read)
    case 'token_refused':
      return concludeRefused(read, 'token_refused')
    case 'refused':
      return concludeRefused(read, result.code)
    case 'outage': {
      const { outages } = read.progress
      const inMs = fullJitter(outages, RETRY_BASE_MS, RETRY_CAP_MS, random)
      return tryAgain(read, result.code, inMs, { outages: outages + 1 })
    }
    case 'throttled': {
      const inMs = spread(result.retryAfterMs ?? SECOND, 0.2, random) + SECOND
      return tryAgain(read, 'platform_throttled', inMs)
    }
    case 'credentials_refused':
      return tryAgain(read, 'app_credentials_refused', spread(30 * SECOND, 0.5, random))
  }
}
