import { MINUTE } from '../clock.js'
import { stillGone, vanished } from './conclude-gone.js'
import { concludeRefused } from './conclude-refused.js'
import { concludeUnread } from './conclude-unread.js'
import type { Conclusion } from './conclusion.js'
import { candidateAfter, type ReadFacts, tryAgain } from './read-facts.js'
import { MISSING_RECHECK_MS } from './read-schedule.js'

/** A record that disappears counts as gone after three reads over a minute. */
const MISSING_READS = 3
const MISSING_OVER_MS = MINUTE

/** The platform answers that it has no such record. */
export function concludeMissing(read: ReadFacts): Conclusion {
  const { before, env } = read
  const failure = 'platform_record_missing'
  if (before.gone) return stillGone(read, failure, true)
  if (before.record === null) return concludeUnread(read, failure, true)
  if (env.manyVanished()) return concludeRefused(read, failure, { missing: 0, missingSince: null })
  const missing = read.progress.missing + 1
  const missingSince = read.progress.missingSince ?? env.now
  if (missing >= MISSING_READS && env.now - missingSince >= MISSING_OVER_MS) return vanished(read)
  const inMs = MISSING_RECHECK_MS[Math.min(missing, 2) - 1] as number
  return { ...tryAgain(read, failure, inMs, { missing, missingSince }), ...candidateAfter(read, false) }
}
