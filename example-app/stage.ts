import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Decision } from '../lib/index.js'
// An installed app writes: from 'marketplace-webhooks/testing'
import { createSimulator, type FaultHandle } from '../lib/testing/index.js'
import { ACTIONS, type ActionName, type Standing } from './actions.js'
import { createAppProcess } from './app-process.js'
import { BUSINESSES, nameOf } from './businesses.js'
import { createTimeline } from './timeline.js'
import { wordsOfActivity, wordsOfDelivery, wordsOfRequest } from './words.js'

/** Long enough to see the app wait for a read; it waits 2 s before it says that it does not know yet. */
const SLOW_MS = 1_200

export type Stage = Awaited<ReturnType<typeof openStage>>

/**
 * Everything the demo plays with: a simulated platform, the app in a process of its own with its database in a folder
 * of its own, and the timeline of what happened between them. `here` is the folder of this example.
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
    // For deliveries to a killed app. The platform promises nothing of the kind; `lifeOf` does without.
    retries: 100,
    retryDelayMs: 1_000,
  })
  const { baseUrl, authUrl } = await simulator.start()
  for (const { uid } of BUSINESSES) simulator.addBusiness(uid)
  let outage: FaultHandle | undefined
  let slowness: FaultHandle | undefined

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
    onDied: (why) => timeline.add({ lane: 'stage', text: `Unexpected: ${why}`, tone: 'bad' }),
  })

  simulator.on('delivery', (delivery) => {
    if (delivery.status === 200 || delivery.attempt === 1) timeline.add(wordsOfDelivery(delivery))
  })
  simulator.on('request', (request) => {
    // A killed process leaves its request behind; the platform answers it all the same.
    const isHeard = request.at >= app.startedAt()
    const words = wordsOfRequest(request, isHeard)
    if (words) timeline.add(words)
  })

  function standing(businessUid: string): Standing {
    const subscription = simulator
      .subscriptions()
      .findLast(({ business_uid }) => business_uid === businessUid)
    return { business_uid: businessUid, subscription, presence: presence.get(businessUid) ?? 'none' }
  }

  return {
    simulator,
    app,
    timeline,
    standing,

    /** Does it, or says in words why it cannot be done. */
    perform(name: ActionName, businessUid: string): string | null {
      const { says, whyNot, perform } = ACTIONS[name]
      const now = standing(businessUid)
      const why = whyNot(now)
      if (why) return why
      timeline.add({ lane: 'platform', business_uid: businessUid, text: `${nameOf(businessUid)} ${says}` })
      perform(simulator, now)
      if (name === 'install') presence.set(businessUid, 'installed')
      if (name === 'uninstall') presence.delete(businessUid)
      if (name.startsWith('buy') && now.presence === 'none') presence.set(businessUid, 'bought')
      return null
    },

    isCutOff: () => outage !== undefined,
    cutOff() {
      if (outage) return
      timeline.add({
        lane: 'stage',
        text: 'The platform is cut off: it delivers, but nobody can reach it',
        tone: 'bad',
      })
      outage = simulator.faults.add({ on: 'platform', kind: 'down' })
    },
    bringBack() {
      if (!outage) return
      outage.remove()
      outage = undefined
      timeline.add({ lane: 'stage', text: 'The platform can be reached again', tone: 'good' })
    },
    isSlow: () => slowness !== undefined,
    slowDown() {
      slowness ??= simulator.faults.add({ on: 'platform', kind: 'slow', ms: SLOW_MS })
      timeline.add({
        lane: 'stage',
        text: `The platform takes ${SLOW_MS / 1_000} s for every answer`,
        tone: 'bad',
      })
    },
    speedUp() {
      slowness?.remove()
      slowness = undefined
      timeline.add({ lane: 'stage', text: 'The platform answers at once again', tone: 'good' })
    },

    async startApp() {
      if (app.isRunning()) return
      await app.start()
      timeline.add({ lane: 'stage', text: 'The app is running', tone: 'good' })
    },
    async killApp() {
      const gone = app.kill()
      timeline.add({ lane: 'stage', text: 'The app is killed (SIGKILL)', tone: 'bad' })
      await gone
    },

    /** The app's own answer, with its reason. */
    async decision(businessUid: string): Promise<Decision> {
      const { status, body } = await app.request('GET', '/access', businessUid)
      if (status !== 200) throw new Error(`expected a decision, and the app answered ${status}`)
      return body as Decision
    },
    /** The same after reading the platform again. */
    async checkAgain(businessUid: string): Promise<void> {
      await app.request('POST', '/access/refresh', businessUid)
    },
    /** The paid page. */
    report: (businessUid: string) => app.request('GET', '/reports', businessUid),

    async close() {
      await app.stop()
      await simulator.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
