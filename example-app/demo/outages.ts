import type { Delivery, FaultHandle, Simulator } from '../../lib/testing/index.js'
import type { AppProcess } from './app-process.js'
import type { ActionName, createBusinessActions } from './business-actions.js'
import type { Timeline } from './timeline.js'

/** Long enough that the app visibly waits for a read. After 2 s it answers that it does not know yet. */
const SLOW_MS = 1_200

/** Outages that a person switches on and off: the platform is down or slow, the app is killed and started. */
export function createOutages(parts: {
  simulator: Simulator
  app: AppProcess
  timeline: Timeline
  perform: ReturnType<typeof createBusinessActions>['perform']
}) {
  const { simulator, app, timeline, perform } = parts
  let outage: FaultHandle | undefined
  let slowness: FaultHandle | undefined

  /** Resolves with the next finished try to deliver to the business. */
  function nextDeliveryOf(businessUid: string): Promise<Delivery> {
    return new Promise((resolve) => {
      const stop = simulator.on('delivery', (delivery) => {
        if (delivery.business_uid !== businessUid) return
        stop()
        resolve(delivery)
      })
    })
  }

  return {
    isCutOff: () => outage !== undefined,
    cutOff() {
      if (outage) return
      timeline.begin({
        kind: 'demo',
        text: 'The platform is cut off: it delivers, but nobody can reach it',
        tone: 'bad',
      })
      outage = simulator.faults.add({ on: 'platform', kind: 'down' })
    },
    bringBack() {
      if (!outage) return
      timeline.begin({ kind: 'demo', text: 'The platform can be reached again', tone: 'good' })
      outage.remove()
      outage = undefined
    },
    isSlow: () => slowness !== undefined,
    slowDown() {
      if (slowness) return
      const text = `The platform takes ${SLOW_MS / 1_000} s for every answer`
      timeline.begin({ kind: 'demo', text, tone: 'bad' })
      slowness = simulator.faults.add({ on: 'platform', kind: 'slow', ms: SLOW_MS })
    },
    speedUp() {
      if (!slowness) return
      timeline.begin({ kind: 'demo', text: 'The platform answers at once again', tone: 'good' })
      slowness.remove()
      slowness = undefined
    },
    async startApp() {
      const isFirst = app.state() === 'stopped'
      if (isFirst) timeline.begin({ kind: 'demo', text: 'The app starts' })
      try {
        await app.start()
      } catch {
        // It was killed before it ran, which the timeline has.
        return
      }
      if (isFirst) timeline.add({ kind: 'demo', text: 'The app is running', tone: 'good' })
    },
    async killApp() {
      if (app.state() === 'stopped') return
      const gone = app.kill()
      timeline.begin({ kind: 'demo', text: 'The app is killed (SIGKILL)', tone: 'bad' })
      await gone
    },
    /** Kills the app as soon as the platform has its acknowledgement. A slow read keeps the app from reading before. */
    async killAfterTheAcknowledgement(name: ActionName, businessUid: string) {
      const slow = simulator.faults.add({ on: 'read', kind: 'slow', ms: 3_000 })
      try {
        const why = perform(name, businessUid)
        if (why) throw new Error(why)
        const { status } = await nextDeliveryOf(businessUid)
        if (status !== 200) throw new Error(`expected an acknowledgement, got ${status ?? 'no reply'}`)
        const gone = app.kill()
        timeline.add({ kind: 'demo', text: 'The app is killed (SIGKILL)', tone: 'bad' })
        await gone
      } finally {
        slow.remove()
      }
    },
  }
}
