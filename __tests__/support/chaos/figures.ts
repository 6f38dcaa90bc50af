import type { Simulator } from '../../../lib/testing/index.js'
import type { Audit } from './audit.js'
import { seconds } from './clock.js'
import type { Commerce } from './commerce.js'
import type { Life } from './instances.js'
import type { Monkey, Trouble } from './monkey.js'
import type { Sender } from './sender.js'
import type { Visitors } from './visitors.js'

/** The figures of a run as a small table. */
export function figuresOf(run: {
  seed: number
  count: number
  ranMs: number
  sender: Sender
  monkey: Monkey
  visitors: Visitors
  commerce: Commerce
  recoveries: readonly number[]
  lives: readonly Life[]
  audit: Audit | undefined
  platform: Simulator
}): string {
  const { seed, count, ranMs, sender, monkey, visitors, commerce, recoveries, lives, audit, platform } = run
  const struck = (...whats: Trouble['what'][]) =>
    monkey.troubles.filter(({ what }) => whats.includes(what)).length
  const { answers, grants, unanswered, slowestMs } = visitors.counts()
  const reads = platform.requests.filter(({ endpoint }) => endpoint === 'read').length
  const rows = {
    [`${count} instances, seed ${seed}`]: seconds(ranMs),
    'actions on the platform': commerce.moves(),
    deliveries: sender.taken(),
    'attempts to deliver': sender.tries(),
    acknowledged: sender.acknowledged.length,
    'reads of the platform': reads,
    'questions answered': answers,
    '  with yes': grants,
    '  without an answer': unanswered,
    '  slowest of a healthy instance': seconds(slowestMs),
    'kills (processes begun)': `${struck('kill')} (${lives.length})`,
    freezes: struck('freeze'),
    'database restarts': struck('database restart'),
    'cut connections to it': struck('cut', 'half open'),
    'black holes, slow connections': struck('black hole', 'slow wire'),
    'platform outages': struck('outage'),
    recoveries: recoveries.length,
    'slowest recovery': seconds(Math.max(0, ...recoveries)),
    'takeovers from the killed': audit?.takeovers ?? 0,
    'slowest takeover': seconds(audit?.slowestTakeoverMs ?? 0),
    changes: audit?.changes ?? 0,
    'handlers called again': audit?.repeated ?? 0,
    'handlers run twice at once after a freeze': audit?.overlapsOfFrozen ?? 0,
  }
  return Object.entries(rows)
    .map(([name, value]) => `  ${name.padEnd(34)}${String(value).padStart(10)}`)
    .join('\n')
}
