import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Decision } from '../lib/index.js'
// An installed app writes: from 'marketplace-webhooks/testing'
import { createSimulator, type Delivery } from '../lib/testing/index.js'
import { ACTIONS, type ActionName, type Standing } from './actions.js'
import { createAppProcess } from './app-process.js'
import { BUSINESSES, nameOf } from './businesses.js'
import { createTimeline } from './timeline.js'
import { createTrouble } from './trouble.js'
import { wordsOfActivity, wordsOfDelivery, wordsOfRequest, wordsOfVisit } from './words.js'

export type Stage = Awaited<ReturnType<typeof openStage>>

/**
 * The parts of the demo: a simulated platform, the app in a separate process with its database in a temporary folder,
 * and the timeline of both. `here` is the folder of this example.
 */
export async function openStage({ here }: { here: string }) {
  const clientId = 'reports'
  const clientSecret = randomBytes(24).toString('base64url')
  const folder = await mkdtemp(join(tmpdir(), 'reports-demo-'))
  const timeline = createTimeline()
  const presence = new Map<string, Standing['presence']>()
  const simulator = createSimulator({
    clientId,
    clientSecret,
    apps: [{ codeName: 'reports', price: '19.00', currency: 'EUR' }],
    // For deliveries to a killed app. The platform does not promise retries, and `lifeOf` does not need them.
    retries: 100,
    retryDelayMs: 1_000,
  })
  const { baseUrl, authUrl } = await simulator.start()
  for (const { uid } of BUSINESSES) simulator.addBusiness(uid)
  const trouble = createTrouble({ simulator, timeline })
  let waitingDeliveries = 0

  const app = createAppProcess({
    script: join(here, 'receiver.ts'),
    env: {
      CLIENT_ID: clientId,
      CLIENT_SECRET: clientSecret,
      PURCHASABLE_UID: simulator.apps[0]?.purchasableUid ?? '',
      CODE_NAME: 'reports',
      BASE_URL: baseUrl,
      AUTH_URL: authUrl,
      APP_TOKEN: simulator.appToken(BUSINESSES[0].uid),
      DELIVERY_SECRETS: randomBytes(24).toString('base64url'),
      STORE: `sqlite:${join(folder, 'reports.db')}`,
    },
    onActivity: (activity) => timeline.add(wordsOfActivity(activity)),
    onDied: (why) => timeline.begin({ kind: 'stage', text: `Unexpected: ${why}`, tone: 'bad' }),
  })

  simulator.on('delivery', (delivery) => {
    const { status, attempt, error } = delivery
    if (status !== 200 && attempt === 1 && error !== 'dropped') waitingDeliveries += 1
    if (status === 200 && attempt > 1) waitingDeliveries -= 1
    if (status === 200 || attempt === 1) timeline.add(wordsOfDelivery(delivery))
  })
  simulator.on('request', (request) => {
    // The platform also answers the request of a process that was killed meanwhile.
    const isReceived = request.at >= app.startedAt()
    const words = wordsOfRequest(request, isReceived)
    if (words) timeline.add(words)
  })

  function standing(businessUid: string): Standing {
    const subscription = simulator
      .subscriptions()
      .findLast(({ business_uid }) => business_uid === businessUid)
    return { business_uid: businessUid, subscription, presence: presence.get(businessUid) ?? 'none' }
  }

  /** Performs the action, or returns the reason why it is not possible. */
  function perform(name: ActionName, businessUid: string): string | null {
    const { phrase, whyNot, perform } = ACTIONS[name]
    const now = standing(businessUid)
    const why = whyNot(now)
    if (why) return why
    timeline.begin({ kind: 'platform', business_uid: businessUid, text: `${nameOf(businessUid)} ${phrase}` })
    perform(simulator, now)
    if (name === 'install') presence.set(businessUid, 'installed')
    if (name === 'uninstall') presence.delete(businessUid)
    if (name.startsWith('buy') && now.presence === 'none') presence.set(businessUid, 'bought')
    return null
  }

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

  /** The paid page; status 0 when the app does not answer. */
  function report(businessUid: string): Promise<{ status: number; body: unknown }> {
    return app.request('GET', '/reports', businessUid).catch(() => ({ status: 0, body: null }))
  }

  return {
    simulator,
    app,
    timeline,
    standing,
    perform,
    ...trouble,
    /** The number of deliveries without a reply. The simulator sends them again. */
    waitingDeliveries: () => waitingDeliveries,

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
    /** The same, with an entry in the timeline. */
    async visit(businessUid: string) {
      const reply = await report(businessUid)
      timeline.addAlone(wordsOfVisit(businessUid, reply.status))
      return reply
    },

    async close() {
      await app.stop()
      await simulator.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
