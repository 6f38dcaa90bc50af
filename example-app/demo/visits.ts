import type { Decision } from '../../lib/index.js'
import type { AppProcess } from './app-process.js'
import { nameOf } from './businesses.js'
import type { Timeline } from './timeline.js'

/** What a business sees of the app. */
export function createVisits(parts: { app: AppProcess; timeline: Timeline }) {
  const { app, timeline } = parts

  /** The paid page; status 0 when the app does not answer. */
  function report(businessUid: string): Promise<{ status: number; body: unknown }> {
    return app.request('GET', '/reports', businessUid).catch(() => ({ status: 0, body: null }))
  }

  return {
    /** The app's own answer, with its reason. */
    async decision(businessUid: string): Promise<Decision> {
      const { status, body } = await app.request('GET', '/access', businessUid)
      if (status !== 200) throw new Error(`expected a decision, got ${status}`)
      return body as Decision
    },
    /** The same after reading the platform again. */
    async checkAgain(businessUid: string): Promise<void> {
      const text = `${nameOf(businessUid)} asks the app to check again`
      timeline.begin({ kind: 'visit', business_uid: businessUid, text })
      await app.request('POST', '/access/refresh', businessUid)
    },
    report,
  }
}
