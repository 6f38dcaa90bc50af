import { setTimeout as pause } from 'node:timers/promises'
import express from 'express'
import { onCleanUp } from '../clean-up.js'
import { DELIVERY_SECRET, serve } from '../scene.js'
import { now } from './clock.js'
import type { Instance } from './instances.js'

/** A delivery that an instance acknowledged. */
export interface Acknowledged {
  ids: string[]
  envelope: Record<string, unknown>
  instance: number
  /** When the acknowledged request was sent, and when its reply came. */
  from: number
  to: number
}

/**
 * A careful sender between the platform and the instances: it takes every delivery of the platform at once, and tries
 * one instance after the other until one acknowledges it.
 */
export async function startSender(instances: readonly Instance[]) {
  const acknowledged: Acknowledged[] = []
  let tries = 0
  let taken = 0
  let waiting = 0
  let turn = 0
  let isClosed = false
  onCleanUp(() => {
    isClosed = true
  })

  async function bring(body: string) {
    waiting++
    while (!isClosed) {
      const instance = instances[turn++ % instances.length] as Instance
      if (await give(instance, body)) break
      await pause(100)
    }
    waiting--
  }

  /** Whether this instance acknowledged the delivery. */
  async function give(instance: Instance, body: string): Promise<boolean> {
    const { url, number } = instance
    if (!url) return false
    tries++
    const from = now()
    try {
      const response = await fetch(`${url}/hooks/${DELIVERY_SECRET}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
        signal: AbortSignal.timeout(5_000),
      })
      const reply = (await response.json()) as { id: string }
      if (response.status !== 200) return false
      const envelope = JSON.parse(body) as Record<string, unknown>
      acknowledged.push({ ids: [reply.id], envelope, instance: number, from, to: now() })
      return true
    } catch {
      return false
    }
  }

  const app = express().post('/', express.text({ type: () => true }), (req, res) => {
    taken++
    void bring(req.body)
    res.json({ received: true })
  })
  return {
    url: await serve(app),
    acknowledged: acknowledged as readonly Acknowledged[],
    give,
    taken: () => taken,
    tries: () => tries,
    /** The number of unacknowledged deliveries. */
    waiting: () => waiting,
  }
}

export type Sender = Awaited<ReturnType<typeof startSender>>
