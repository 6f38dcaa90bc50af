import { createHmac, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type Child, startChild } from './child.js'
import { load, type Target } from './load.js'
import type { Measured, Results, Server } from './results.js'

const CONNECTIONS = 64
const ROUNDS = 5
const ROUND_MS = 4_000
const WARM_UP_MS = 2_000
const DRAIN_MS = 4_000

/** A notice of the event `purchasable_subscription/update`: the same for everyone. */
const BODY = JSON.stringify({
  entity_name: 'purchasable_subscription',
  event_type: 'update',
  data: {
    business_id: 'b6f0c6a2-1d7f-4a4e-9d3c-7f1f3a2b9c10',
    purchasable_uid: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    subscription_uid: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
  },
})

type Measurement = Pick<
  Results,
  'connections' | 'secondsPerRound' | 'receiving' | 'drainedAfterMs' | 'sqlite'
>

/**
 * Deliveries per second and their latency, in rounds: in each round every server is under load once, alone, and the
 * order turns from round to round, so that what else the machine does falls on all of them.
 */
export async function measureReceiving(options: {
  platformUrl: string
  folder: string
  say(text: string): void
}): Promise<Measurement> {
  const { platformUrl, folder, say } = options
  const secret = randomBytes(24).toString('base64url')
  const children = {
    marketplace: await startChild('marketplace.mjs', [platformUrl, join(folder, 'receiving.db'), secret]),
    express: await startChild('express-json.mjs'),
    octokit: await startChild('octokit.mjs', [secret]),
  }
  const targets: Record<Server, Target> = {
    marketplace: target(children.marketplace, `/x/${secret}`),
    express: target(children.express, '/x'),
    octokit: target(children.octokit, '/x', {
      'X-GitHub-Event': 'marketplace_purchase',
      'X-GitHub-Delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'X-Hub-Signature-256': `sha256=${createHmac('sha256', secret).update(BODY).digest('hex')}`,
    }),
  }

  async function measure(server: Server, durationMs: number): Promise<Measured> {
    const before = await children[server].ask<number>('cpu')
    const result = await load(targets[server], CONNECTIONS, durationMs)
    const used = (await children[server].ask<number>('cpu')) - before
    if (result.refused > 0) throw new Error(`${server} refused ${result.refused} requests`)
    const requests = result.requestsPerSecond * (durationMs / 1_000)
    return { ...result, cpuMicrosPerRequest: used / requests }
  }

  try {
    for (const server of SERVERS) await measure(server, WARM_UP_MS)
    await drained(children.marketplace)

    const receiving: Results['receiving'] = []
    const drainedAfterMs: number[] = []
    for (let number = 0; number < ROUNDS; number++) {
      const round: Partial<Record<Server, Measured>> = {}
      for (const server of rotated(SERVERS, number)) {
        round[server] = await measure(server, ROUND_MS)
        // What is left to do must not fall on the next one's time.
        if (server === 'marketplace') drainedAfterMs.push(await drained(children.marketplace))
      }
      receiving.push(round as Record<Server, Measured>)
      say(
        `round ${number + 1} of ${ROUNDS}: ${SERVERS.map((server) => brief(server, round[server])).join(' · ')}`,
      )
    }
    const sqlite = await children.marketplace.ask<string>('sqlite')
    return { connections: CONNECTIONS, secondsPerRound: ROUND_MS / 1_000, receiving, drainedAfterMs, sqlite }
  } finally {
    for (const child of Object.values(children)) await child.stop()
  }
}

const SERVERS = ['marketplace', 'express', 'octokit'] as const

function target({ port }: Child, path: string, headers: Record<string, string> = {}): Target {
  return { port, path, headers: { 'Content-Type': 'application/json', ...headers }, body: BODY }
}

function rotated<T>(list: readonly T[], by: number): T[] {
  const at = by % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

/** Milliseconds until no journal entry waits any more, at most DRAIN_MS. */
async function drained(child: Child): Promise<number> {
  const start = performance.now()
  while ((await child.ask<number>('backlog')) > 0 && performance.now() - start < DRAIN_MS) {
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return performance.now() - start
}

function brief(server: Server, measured: Measured | undefined): string {
  if (!measured) return server
  const { requestsPerSecond, p99Ms, cpuMicrosPerRequest } = measured
  const figures = [
    `${Math.round(requestsPerSecond)}/s`,
    `p99 ${p99Ms.toFixed(1)} ms`,
    `${Math.round(cpuMicrosPerRequest)} µs CPU`,
  ]
  return `${server} ${figures.join(', ')}`
}
