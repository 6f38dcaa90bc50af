import { setTimeout as pause } from 'node:timers/promises'
import { now } from './clock.js'
import type { Commerce } from './commerce.js'
import type { Instance } from './instances.js'
import type { Monkey } from './monkey.js'

/**
 * Once the platform, the database and the instance have worked for this long, an answer follows the platform: the lease
 * of a dead or frozen process, a few tries of a read, a cached answer's 5 s.
 */
const LAG_MS = 20_000
/** After an outage the pauses between reads have grown, the more the longer it was; see `fullJitter`. */
const AFTER_OUTAGE_MS = 25_000
/** From the platform's answer to the commit of the time of the read: a call and its repetition, and a slow database. */
const COMMIT_MS = 10_000

/**
 * Ask instances at random whether businesses may use the app, and judge each yes. An answer holds for some moment
 * between question and reply: an instance may freeze between the two.
 */
export function createVisitors(options: {
  instances: readonly Instance[]
  commerce: Commerce
  monkey: Monkey
  random: () => number
  maxStaleMs: number
  onWrong(text: string): void
}) {
  const { instances, commerce, monkey, random, maxStaleMs, onWrong } = options
  let answers = 0
  let grants = 0
  let unanswered = 0
  let slowestMs = 0

  async function ask(instance: Instance, businesses: readonly string[]) {
    const { url, number } = instance
    if (!url) return
    const from = now()
    const troubles = monkey.troubles.length
    try {
      const response = await fetch(`${url}/entitled?of=${businesses.join(',')}`, {
        signal: AbortSignal.timeout(20_000),
      })
      const entitled = (await response.json()) as boolean[]
      const to = now()
      answers += entitled.length
      const isQuiet =
        monkey.troubles.length === troubles && monkey.around(number).every((each) => each.to < from)
      if (isQuiet) slowestMs = Math.max(slowestMs, to - from)
      for (const [at, business] of businesses.entries()) {
        if (!entitled[at]) continue
        grants++
        judge(business, number, from, to)
      }
    } catch {
      // The instance was killed, or frozen for long.
      unanswered++
    }
  }

  function judge(business: string, instance: number, from: number, to: number) {
    const who = `instance ${instance} let ${business} in at ${Math.round(from)}-${Math.round(to)}`
    const allowed = commerce
      .allowedWindows(business)
      .map((each) => `${Math.round(each.from)}-${Math.round(each.to)}`)
    if (!commerce.wasAllowedWithin(business, { from: from - maxStaleMs - COMMIT_MS, to })) {
      onWrong(
        `${who}, and the platform had not for longer than maxStaleMs; it had at ${allowed.join(', ') || 'no time'}`,
      )
      return
    }
    const wholeSince = Math.max(
      Number.NEGATIVE_INFINITY,
      ...monkey
        .around(instance)
        .map(({ target, to: end }) => end + (target === 'platform' ? AFTER_OUTAGE_MS : 0)),
    )
    const lagMs = from - Math.max(commerce.lastAllowed(business), wholeSince)
    if (lagMs > LAG_MS) {
      onWrong(
        `${who}, ${Math.round(lagMs)} ms after the platform and all else was whole; it had at ${allowed.join(', ')}`,
      )
    }
  }

  return {
    /** Some businesses, one instance; a caller with other work does not await it. */
    async visit() {
      const instance = instances[Math.floor(random() * instances.length)] as Instance
      const first = Math.floor(random() * commerce.businesses.length)
      await ask(instance, commerce.businesses.slice(first, first + 5))
    },
    /** Visits until `isOver`, up to 50 at once. */
    async come(isOver: () => boolean) {
      let inside = 0
      while (!isOver()) {
        if (inside < 50) {
          inside++
          void this.visit().finally(() => inside--)
        }
        await pause(100)
      }
    },
    counts: () => ({ answers, grants, unanswered, slowestMs }),
  }
}

export type Visitors = ReturnType<typeof createVisitors>
