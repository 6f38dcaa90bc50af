import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'

// A process id comes back, also as the only one of a container that starts again: `life` tells this process from those.
const host = hostname()
const life = randomUUID()
let leases = 0

/** Names one lease for ever, and in it the process that holds it. */
export function newLeaseToken(): string {
  return [host, process.pid, life, ++leases].join('/')
}

/**
 * Whether the process that took the lease ran on this machine and is gone, so that nobody has to wait for the lease to
 * run out. Only certainty counts: false for other machines, and where a process id has been given to somebody else.
 */
export function isAbandoned(leaseToken: string): boolean {
  const [itsHost, itsPid, itsLife] = leaseToken.split('/')
  if (itsHost !== host || itsLife === life) return false
  const pid = Number(itsPid)
  return pid === process.pid || !isAlive(pid)
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: alive, and another user's.
    return (error as { code?: unknown }).code !== 'ESRCH'
  }
}
