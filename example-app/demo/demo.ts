import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
// An installed app writes: from 'marketplace-webhooks/testing'
import { createSimulator } from '../../lib/testing/index.js'
import { createAppProcess } from './app-process.js'
import { createBusinessActions } from './business-actions.js'
import { BUSINESSES } from './businesses.js'
import { createOutages } from './outages.js'
import { createTimeline } from './timeline.js'
import { textOfActivity, textOfDelivery, textOfRequest } from './timeline-texts.js'
import { createVisits } from './visits.js'

export type Demo = Awaited<ReturnType<typeof openDemo>>

/**
 * The parts of the demo: a simulated platform, the app in a separate process with its database in a temporary folder,
 * and the timeline of both. `appScript` starts the app.
 */
export async function openDemo({ appScript }: { appScript: string }) {
  const clientId = 'reports'
  const clientSecret = randomBytes(24).toString('base64url')
  const folder = await mkdtemp(join(tmpdir(), 'reports-demo-'))
  const timeline = createTimeline()
  const simulator = createSimulator({
    clientId,
    clientSecret,
    apps: [{ codeName: 'reports', price: '19.00', currency: 'EUR' }],
    // For deliveries to a killed app. The platform does not promise retries, and `scenarioOf` does not need them.
    retries: 100,
    retryDelayMs: 1_000,
  })
  const { baseUrl, authUrl } = await simulator.start()
  for (const { uid } of BUSINESSES) simulator.addBusiness(uid)
  const businessActions = createBusinessActions({ simulator, timeline })
  let waitingDeliveries = 0

  const app = createAppProcess({
    script: appScript,
    env: {
      MARKETPLACE_CLIENT_ID: clientId,
      MARKETPLACE_CLIENT_SECRET: clientSecret,
      MARKETPLACE_PURCHASABLE_UID: simulator.apps[0]?.purchasableUid ?? '',
      MARKETPLACE_CODE_NAME: 'reports',
      MARKETPLACE_BASE_URL: baseUrl,
      MARKETPLACE_AUTH_URL: authUrl,
      APP_TOKEN: simulator.appToken(BUSINESSES[0].uid),
      DELIVERY_SECRETS: randomBytes(24).toString('base64url'),
      MARKETPLACE_STORE: `sqlite:${join(folder, 'reports.db')}`,
    },
    onActivity: (activity) => timeline.add(textOfActivity(activity)),
    onDied: (why) => timeline.begin({ kind: 'demo', text: `Unexpected: ${why}`, tone: 'bad' }),
  })

  simulator.on('delivery', (delivery) => {
    const { status, attempt, error } = delivery
    if (status !== 200 && attempt === 1 && error !== 'dropped') waitingDeliveries += 1
    if (status === 200 && attempt > 1) waitingDeliveries -= 1
    if (status === 200 || attempt === 1) timeline.add(textOfDelivery(delivery))
  })
  simulator.on('request', (request) => {
    // The platform also answers the request of a process that was killed in the meantime.
    const isReceived = request.at >= app.startedAt()
    const words = textOfRequest(request, isReceived)
    if (words) timeline.add(words)
  })

  return {
    simulator,
    app,
    timeline,
    ...businessActions,
    /** The number of deliveries without a reply. The simulator sends them again. */
    waitingDeliveries: () => waitingDeliveries,
    ...createOutages({ simulator, app, timeline, perform: businessActions.perform }),
    ...createVisits({ app, timeline }),

    async close() {
      await app.stop()
      await simulator.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
