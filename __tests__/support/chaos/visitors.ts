import { setTimeout as pause } from 'node:timers/promises'
import { now } from './clock.js'
import type { Commerce } from './commerce.js'
import type { Instance } from './instances.js'
import type { Monkey } from './monkey.js'

/**
 * When the platform, the database and the instance have worked for this long, an answer must be the platform's. The
 * time covers the lease of a dead or frozen process, some tries of a read, and 5 s of a cached answer.
 */
const LAG_MS = 20_000
/** After an outage the pauses between reads have grown, according to its length; see `fullJitter`. */
const AFTER_OUTAGE_MS = 25_000
/** A business that uninstalled the app is out a minute after the first refused token. */
const REVOKED_MS = 75_000
/** From the platform's answer to the commit of the read's time: a call, its repetition, and a slow database. */
const COMMIT_MS = 10_000

/**
 * Visitors ask random instances whether businesses may use the app, and check each yes. An answer is correct if it was
 * true at some moment between question and reply, because an instance may freeze between the two.
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
      // The instance was killed, or frozen for a long time.
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
        `${who}, but the platform had not allowed it for longer than maxStaleMs; it had at ${allowed.join(', ') || 'no time'}`,
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
    if (lagMs > LAG_MS + (commerce.hasLeft(business) ? REVOKED_MS : 0)) {
      onWrong(
        `${who}, ${Math.round(lagMs)} ms after the platform and all other parts worked again; it had at ${allowed.join(', ')}`,
      )
    }
  }

  return {
    /** Asks one instance about some businesses. A caller that has other work does not await it. */
    async visit() {
      const instance = instances[Math.floor(random() * instances.length)] as Instance
      const first = Math.floor(random() * commerce.businesses.length)
      await ask(instance, commerce.businesses.slice(first, first + 5))
    },
    /** Visits until `isOver()`, with up to 50 visits at once. */
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
