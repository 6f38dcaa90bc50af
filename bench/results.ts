import { availableParallelism, cpus } from 'node:os'
import type { Load } from './load.js'

/** One server under load in one round. */
export interface Measured extends Load {
  /** CPU time of the server's process for one request, its database and its threads included. */
  cpuMicrosPerRequest: number
}

export type Server = 'marketplace' | 'express' | 'octokit'

export interface Results {
  command: string
  date: string
  node: string
  sqlite: string
  cpu: string
  connections: number
  secondsPerRound: number
  receiving: Record<Server, Measured>[]
  /** Milliseconds after each round until nothing waited for handlers any more. */
  drainedAfterMs: number[]
  /** Nanoseconds for each call. */
  entitlement: { isEntitled: number; bareGet: number }[]
}

export const SERVER_NAMES: Record<Server, string> = {
  marketplace: 'marketplace-webhooks: on disk before the reply',
  express: 'bare Express route with express.json(): keeps nothing',
  octokit: '@octokit/webhooks: signature checked, keeps nothing',
}

export interface Spread {
  median: number
  min: number
  max: number
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (index: number) => sorted[index] ?? Number.NaN
  const middle = (sorted.length - 1) / 2
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    min: at(0),
    max: at(sorted.length - 1),
  }
}

/** What was measured of one server by what was measured of another in the same round. */
export function ratioOf({ receiving }: Results, of: Server, by: Server, what: keyof Measured): Spread {
  return spreadOf(receiving.map((round) => round[of][what] / round[by][what]))
}

export function entitlementRatio({ entitlement }: Results): Spread {
  return spreadOf(entitlement.map(({ isEntitled, bareGet }) => isEntitled / bareGet))
}

/** What we aim at, with whether this run got there. Printed, never asserted: machines differ, and are busy. */
export function aims(results: Results): { aim: string; reached: boolean }[] {
  const peers = (['express', 'octokit'] as const).map((peer) => ({
    throughput: ratioOf(results, 'marketplace', peer, 'requestsPerSecond').median,
    p99: ratioOf(results, 'marketplace', peer, 'p99Ms').median,
  }))
  return [
    {
      aim: 'receives at least 1.5 × as much as either',
      reached: peers.every((peer) => peer.throughput >= 1.5),
    },
    { aim: 'with a lower p99 than either', reached: peers.every((peer) => peer.p99 < 1) },
    { aim: '`isEntitled` takes at most 3 × the bare get', reached: entitlementRatio(results).median <= 3 },
  ]
}

export function describeCpu(): string {
  return `${availableParallelism()} × ${cpus()[0]?.model.trim() ?? 'unknown CPU'}`
}
