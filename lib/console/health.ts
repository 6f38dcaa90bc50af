import type { ConsoleMarketplace } from './needs.js'
import type { HealthReply } from './shapes.js'

/** What to do about a problem, by words of its sentence; the first that fits. */
const TODO: readonly [RegExp, string][] = [
  [
    /reads are paused/,
    'Nothing at once: reading goes on by itself. If it stays for an hour, look at the status page of the platform, and lower platform.concurrency if it says 429.',
  ],
  [
    /refuse/,
    'Check app.clientId and app.clientSecret, and that the app is still listed on the platform. Answers stay as they are until maxStaleMs.',
  ],
  [
    /reads fail/,
    'Check that platform.baseUrl and platform.authUrl are right and reachable from this machine. Answers stay as they are until maxStaleMs.',
  ],
  [/journal entries are dead/, 'Open Needs attention: mend what the error names, then replay the group.'],
  [/tried again/, 'Open Needs attention: the error of the handler is there. It is tried again by itself.'],
  [
    /oldest entry/,
    'Check that an instance with a worker runs and has the handlers; if it does, its handlers are too slow for what comes in.',
  ],
  [
    /oldest requested read/,
    'Check that an instance with a worker runs. If it does, the platform is slow: see the reads in the metrics.',
  ],
  [/not read any more/, 'Search one of them by its reason in Business, and press Read again.'],
  [
    /purchasableUid|other item/,
    'Compare app.purchasableUid with the item on the platform: see Other items in Needs attention.',
  ],
  [/worker has stopped|closed/, 'Restart this instance.'],
  [
    /full|space|disk/i,
    'Make room on the disk. Deliveries are refused meanwhile, and the platform may send them again.',
  ],
  [/./, 'Give this sentence to an operator, with the time.'],
]

const STARTED_AT = new Date(Date.now() - process.uptime() * 1_000).toISOString()

export function createHealthCall(marketplace: ConsoleMarketplace) {
  return async function health(): Promise<HealthReply> {
    const [health, readiness] = await Promise.all([marketplace.health(), marketplace.readiness()])
    return {
      health,
      readiness,
      problems: health.problems.map((problem) => ({ problem, todo: todoFor(problem) })),
      process: { pid: process.pid, node: process.version, startedAt: STARTED_AT },
      now: new Date().toISOString(),
    }
  }
}

function todoFor(problem: string): string {
  return TODO.find(([words]) => words.test(problem))?.[1] ?? ''
}
