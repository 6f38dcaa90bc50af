import type { Engine } from './engine.js'
import { isAbandoned } from './lease-token.js'
import { sql } from './sql.js'

/** Makes the work of processes of this machine that died due at once, not when their leases run out. */
export async function endAbandonedLeases({ write, leaseNow }: Engine) {
  await write(async (trx) => {
    const rows = await sql<{ token: string }>`
      select lease_token as token from subscriptions where lease_token is not null
      union select lease_token from lanes where lease_token is not null`.execute(trx)
    for (const { token } of rows.filter((row) => isAbandoned(row.token))) {
      await sql`update subscriptions set refresh_at = ${leaseNow()} where lease_token = ${token}`.execute(trx)
      await sql`update lanes set due_at = ${leaseNow()} where lease_token = ${token}`.execute(trx)
    }
  })
}
