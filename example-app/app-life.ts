import type { Delivery, Simulator } from '../lib/testing/index.js'
import type { createActing } from './acting.js'
import type { ActionName } from './actions.js'
import type { AppProcess } from './app-process.js'
import type { Timeline } from './timeline.js'

/** Starts and kills the app. */
export function createAppLife(parts: {
  simulator: Simulator
  app: AppProcess
  timeline: Timeline
  perform: ReturnType<typeof createActing>['perform']
}) {
  const { simulator, app, timeline, perform } = parts

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
    async startApp() {
      if (app.isRunning()) return
      timeline.begin({ kind: 'stage', text: 'The app starts' })
      await app.start()
      timeline.add({ kind: 'stage', text: 'The app is running', tone: 'good' })
    },
    async killApp() {
      const gone = app.kill()
      timeline.begin({ kind: 'stage', text: 'The app is killed (SIGKILL)', tone: 'bad' })
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
        timeline.add({ kind: 'stage', text: 'The app is killed (SIGKILL)', tone: 'bad' })
        await gone
      } finally {
        slow.remove()
      }
    },
  }
}
