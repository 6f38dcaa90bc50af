import { type Clock, SECOND } from '../../base/clock.js'
import { PROBLEMS } from '../../base/health.js'
import { createListeners } from '../../base/listeners.js'
import type { Telemetry } from '../../telemetry/telemetry.js'
import type { Health } from './health-check.js'

/** How often health is checked while somebody waits for its changes. A check costs the bounded counts of the store. */
const EVERY_MS = 10 * SECOND
const LEVELS = { ok: 'info', degraded: 'warn', failing: 'error' } as const

/** Gets `health` when its status or the set of its problem codes has changed, and `before`, the health last reported. */
export type HealthListener = (health: Health, before: Health) => void

/**
 * Reports each change of health to the app's listeners and to its logger: another status, or another set of problem
 * codes. Numbers in a message are no change. Each call of `health` is a check; while there is a logger or a listener,
 * there is one every 10 s too. Nothing is reported once `close()` has begun.
 */
export function createHealthChanges(options: {
  check(): Promise<Health>
  telemetry: Pick<Telemetry, 'hasLogger' | 'report' | 'failure'>
  clock: Clock
}) {
  const { check, telemetry, clock } = options
  const listeners = createListeners<{ health: Health; before: Health }>((error) =>
    telemetry.failure('listeners', error),
  )
  let reported: Health = { status: 'ok', problems: [], counts: null }
  let timer: unknown
  let isClosed = false

  async function health(): Promise<Health> {
    const found = await check()
    const isEnd = isClosed || found.problems.some(({ code }) => code === 'closed')
    if (isEnd || kindOf(found) === kindOf(reported)) return found
    const before = reported
    reported = found
    telemetry.report(LEVELS[found.status], fieldsOf(found), `Health is ${summaryOf(found)}`)
    listeners.call({ health: found, before })
    return found
  }

  function watch() {
    if (isClosed || timer !== undefined || !(telemetry.hasLogger || listeners.count() > 0)) return
    timer = clock.setTimeout(() => {
      const again = () => {
        timer = undefined
        watch()
      }
      health().then(again, again)
    }, EVERY_MS)
  }
  watch()

  return {
    health,

    onHealthChange(listener: HealthListener): () => void {
      const remove = listeners.add(
        typeof listener === 'function' ? ({ health, before }) => listener(health, before) : listener,
      )
      watch()
      return remove
    },

    close() {
      isClosed = true
      clock.clearTimeout(timer)
    },
  }
}

function kindOf({ status, problems }: Health): string {
  return [status, ...problems.map(({ code }) => code).sort()].join(' ')
}

function fieldsOf({ status, problems }: Health) {
  return problems.length === 0 ? { status } : { status, problems: problems.map(({ code }) => code).join(' ') }
}

function summaryOf({ status, problems }: Health): string {
  if (status === 'ok') return 'ok again'
  return `${status}: ${problems.map((problem) => `${saidOf(problem)} ${problem.next}`).join(' ')}`
}

/** The message of a problem, or its meaning if the message quotes what was received: a log must not repeat that. */
function saidOf({ code, message }: Health['problems'][number]): string {
  const row = PROBLEMS[code]
  return 'quotes' in row ? row.means : `${message}.`
}
