import type { ConsoleMarketplace } from './needs.js'
import type { HealthReply } from './shapes.js'

/** The advice for a problem, found by words of its sentence. The first match counts. */
const TODO: readonly [RegExp, string][] = [
  [
    /refuse|no longer shows/,
    'Check app.clientId, app.clientSecret and platform.baseUrl, and that the app is still listed on the platform. Until maxStaleMs the answers do not change.',
  ],
  [
    /reads are paused/,
    'Wait: the reads continue by themselves. If they are still paused after an hour, check the status page of the platform. If the reason is 429, lower platform.concurrency.',
  ],
  [
    /reads fail/,
    'Check that platform.baseUrl and platform.authUrl are correct and can be reached from this machine. Until maxStaleMs the answers do not change.',
  ],
  [/journal entries are dead/, 'Open Needs attention: fix the cause of the error, then replay the group.'],
  [/tried again/, 'Open Needs attention to see the error of the handler. The next try follows by itself.'],
  [
    /oldest entry/,
    'Check that an instance with a worker runs and has the handlers. If it does, the handlers are too slow for the number of entries.',
  ],
  [
    /oldest requested read/,
    'Check that an instance with a worker runs. If it does, the platform is slow: see read.duration in the metrics.',
  ],
  [/not read any more/, 'Find one of them in the list of Business, and press Read again.'],
  [
    /purchasableUid|other item/,
    'Compare app.purchasableUid with the item on the platform: see Other items in Needs attention.',
  ],
  [
    /expected shape/,
    'Compare the payload and the issues under Unrecognised in Needs attention. For an event of your own, correct its schema; for one of the platform, update this package.',
  ],
  [/worker has stopped|closed/, 'Restart this instance.'],
  [/store does not answer/, 'Check the database, and the network between this instance and the database.'],
  [
    /write has not finished/,
    'Check the disk of the database, and end long transactions of other programs in this database.',
  ],
  [
    /full|space|disk/i,
    'Free space on the disk. Until then deliveries are refused, and the platform may send them again.',
  ],
]
/** Problems that quote an error of the database or the system. */
const OTHER = 'Send this sentence and the time to an operator.'

const STARTED_AT = new Date(Date.now() - process.uptime() * 1_000).toISOString()

export function createHealthCall(marketplace: ConsoleMarketplace) {
  return async function health(): Promise<HealthReply> {
    const [health, readiness, deployment] = await Promise.all([
      marketplace.health(),
      marketplace.readiness(),
      marketplace.deployment().catch(() => null),
    ])
    return {
      health,
      readiness,
      problems: health.problems.map((problem) => ({ problem, todo: todoFor(problem) })),
      deployment,
      process: { pid: process.pid, node: process.version, startedAt: STARTED_AT },
      now: new Date().toISOString(),
    }
  }
}

export function todoFor(problem: string): string {
  return TODO.find(([words]) => words.test(problem))?.[1] ?? OTHER
}
