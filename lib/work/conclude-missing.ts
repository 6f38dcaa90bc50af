import { ended, stillGone } from './conclude-gone.js'
import { concludeRefused } from './conclude-refused.js'
import { concludeUnread } from './conclude-unread.js'
import type { Conclusion } from './conclusion.js'
import { MISSING_READS } from './end-evidence.js'
import { candidateAfter, type ReadFacts, tryAgain } from './read-facts.js'
import { MISSING_RECHECK_MS } from './read-schedule.js'

/** The platform answers that it has no such record. */
export function concludeMissing(read: ReadFacts): Conclusion {
  const { before, env } = read
  const failure = 'platform_record_missing'
  if (before.gone) return stillGone(read, failure, true)
  if (before.record === null) return concludeUnread(read, failure, true)
  if (env.belief === 'believed') return ended(read, failure)
  const missing = read.progress.missing + 1
  const missingSince = read.progress.missingSince ?? env.now
  // Held back, or canceled: it is read again as after a refusal.
  if (env.belief !== undefined || before.state === 'canceled')
    return concludeRefused(read, failure, { missing, missingSince })
  const inMs = MISSING_RECHECK_MS[Math.min(missing, MISSING_READS - 1) - 1] as number
  return { ...tryAgain(read, failure, inMs, { missing, missingSince }), ...candidateAfter(read, false) }
}
