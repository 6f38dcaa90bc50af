import type { HealthReply } from '../shared/shapes.js'
import type { ConsoleMarketplace } from './rows.js'

const STARTED_AT = new Date(Date.now() - process.uptime() * 1_000).toISOString()

export function createHealthCall(marketplace: ConsoleMarketplace) {
  return async function health(): Promise<HealthReply> {
    const [health, readiness] = await Promise.all([marketplace.health(), marketplace.readiness()])
    return {
      health,
      readiness,
      process: { pid: process.pid, node: process.version, startedAt: STARTED_AT },
      now: new Date().toISOString(),
    }
  }
}
