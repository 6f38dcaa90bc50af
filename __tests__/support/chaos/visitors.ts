import { SECOND } from '../../../lib/base/clock.js'
import type { Verdict } from '../world/promises.js'
import type { Random } from '../world/random.js'
import { now, realTime, type Window } from './clock.js'
import type { Instance } from './instances.js'
import type { Monkey } from './monkey.js'
import type { Platform } from './platform.js'

/**
 * When the platform, the database and the instance have worked for this long, an answer must be the platform's. The
 * time covers the lease of a dead or frozen process, some tries of a read, and 5 s of a cached answer.
 */
const LAG_MS = 20 * SECOND
/** After an outage the pauses between reads have grown, according to its length; see `fullJitter`. */
const AFTER_OUTAGE_MS = 25 * SECOND
/** A business that uninstalled the app is out a minute after the first refused token. */
const REVOKED_MS = 75 * SECOND
/** From the platform's answer to the commit of the read's time: a call, its repetition, and a slow database. */
const COMMIT_MS = 10 * SECOND

/**
 * Visitors ask random instances whether businesses may use the app, and check each yes. An answer is correct if it was
 * true at some moment between question and reply, because an instance may freeze between the two.
 */
export function createVisitors(options: {
  instances: readonly Instance[]
  businesses: readonly string[]
  platform: Platform
  monkey: Monkey
  random: Random
  maxStaleMs: number
  verdict: Verdict
}) {
  const { instances, businesses, platform, monkey, random, maxStaleMs, verdict } = options
  const counts = { answers: 0, grants: 0, slowestMs: 0 }

  async function visit() {
    const instance = random.pick(instances)
    const first = random.between(0, businesses.length - 1)
    const asked = businesses.slice(first, first + 5)
    if (!instance.url) return verdict.skipped('follow', 'no process was up')
    const from = now()
    const troubles = monkey.troubles.length
    const entitled = await instance.get<boolean[]>(`entitled?of=${asked.join()}`)
    // The instance was killed, or frozen for a long time.
    if (!entitled) return verdict.skipped('follow', 'nobody answered')
    const to = now()
    counts.answers += entitled.length
    const isQuiet =
      monkey.troubles.length === troubles && monkey.around(instance.number).every((each) => each.to < from)
    if (isQuiet) counts.slowestMs = Math.max(counts.slowestMs, to - from)
    for (const [at, business] of asked.entries()) {
      verdict.made('entitled')
      verdict.made('follow')
      if (!entitled[at]) continue
      counts.grants++
      judge(business, instance.number, { from, to })
    }
  }

  function judge(business: string, instance: number, { from, to }: Window) {
    const at = ({ from, to }: Window) => `${Math.round(from)}-${Math.round(to)}`
    const who = `instance ${instance} let ${business} in at ${at({ from, to })}`
    const allowed = platform.allowedWindows(business).map(at).join(', ') || 'no time'
    if (!platform.wasAllowedWithin(business, { from: from - maxStaleMs - COMMIT_MS, to })) {
      const what = 'but the platform had not allowed it for longer than maxStaleMs'
      return verdict.fail('entitled', `${who}, ${what}; it had at ${allowed}`)
    }
    const wholeSince = Math.max(
      Number.NEGATIVE_INFINITY,
      ...monkey
        .around(instance)
        .map(({ target, to: end }) => end + (target === 'platform' ? AFTER_OUTAGE_MS : 0)),
    )
    const lagMs = from - Math.max(platform.lastAllowed(business), wholeSince)
    if (lagMs > LAG_MS + (platform.isRefused(business) ? REVOKED_MS : 0)) {
      const what = `${Math.round(lagMs)} ms after the platform and all other parts worked again`
      verdict.fail('follow', `${who}, ${what}; it had at ${allowed}`)
    }
  }

  return {
    counts,
    /** Visits until `isOver()`, with up to 50 visits at once. */
    async come(isOver: () => boolean) {
      let inside = 0
      while (!isOver()) {
        if (inside < 50) {
          inside++
          void visit().finally(() => inside--)
        }
        await realTime.sleep(100)
      }
    },
  }
}

export type Visitors = ReturnType<typeof createVisitors>
