import { join } from 'node:path'
import express from 'express'
import type { Clock } from '../../lib/base/clock.js'
import { createMarketplace, type Marketplace, type MarketplaceOptions } from '../../lib/index.js'
import { INTERNALS } from '../../lib/options.js'
import { createSimulator, type Simulator, type SimulatorOptions } from '../../lib/testing/index.js'
import { onCleanUp, temporaryFolder } from './clean-up.js'
import { internals } from './internals.js'
import { jumpingClock } from './machine/jumping-clock.js'
import { serve } from './serving.js'
import { CLIENT, DELIVERY_SECRET, OTHER_ITEM, OUR_ITEM } from './settings.js'

export { CLIENT, DELIVERY_SECRET, OTHER_ITEM, OUR_ITEM, serve }

type SceneOptions = Omit<Partial<MarketplaceOptions>, 'app' | 'platform'> & {
  app?: Partial<MarketplaceOptions['app']>
  platform?: Partial<MarketplaceOptions['platform']>
}

export interface Scene {
  platform: Simulator
  marketplace: Marketplace
  app: express.Express
  /** The address at which the app listens. */
  url: string
  /** The address for deliveries. */
  target: string
  /** Delivers a value as JSON, or a text unchanged, as the platform does. */
  deliver(
    body: unknown,
  ): Promise<{ status: number; id: string; headers: Headers; body: Record<string, unknown> }>
  /** The codes of the problems that health shows. */
  codes(): Promise<string[]>
  /** The clock of the app. Unless the test gives its own, `jump` and `leap` move it: see `jumpingClock`. */
  clock: Clock
  jump(ms: number): void
  leap(ms: number): void
}

/** An Express app with a marketplace, to which a simulated platform delivers over real HTTP. */
export async function createScene(
  options: SceneOptions = {},
  simulatorOptions: Partial<SimulatorOptions> = {},
): Promise<Scene> {
  const platform = await startPlatform(simulatorOptions)
  const time = jumpingClock()
  const { clock = time.clock } = options
  const marketplace = openMarketplace(platform, { ...options, clock })
  const app = express().use('/hooks', marketplace.router)
  const url = await serve(app)
  const target = marketplace.webhooks.targetUrl(`${url}/hooks`)
  for (const event of REGISTERED) await platform.register(event, target)
  return {
    ...{ platform, marketplace, app, url, target, ...time, clock },
    deliver: (body) => deliver(target, body),
    codes: () => codesOf(marketplace),
  }
}

/** The codes of the problems that health shows. */
export async function codesOf(marketplace: Pick<Marketplace, 'health'>): Promise<string[]> {
  return (await marketplace.health()).problems.map(({ code }) => code)
}

/** The address of a new database in a file. */
export function newFile(): string {
  return `sqlite:${join(temporaryFolder(), 'm.db')}`
}

/** The events that an app registers for with its own token. Tests that need `updated` add it. */
const REGISTERED = [
  'purchasable_subscription/create',
  'purchasable_subscription/update',
  'application/installed',
  'application/uninstalled',
] as const

export async function startPlatform(options: Partial<SimulatorOptions> = {}): Promise<Simulator> {
  const apps = [
    { purchasableUid: OUR_ITEM, codeName: 'ours' },
    { purchasableUid: OTHER_ITEM, codeName: 'other' },
  ]
  const platform = createSimulator({ ...CLIENT, apps, seed: 1, ...options })
  onCleanUp(() => platform.close())
  await platform.start()
  return platform
}

/** A marketplace, by default in memory, closed after the test. Its retries are quick, so the tests are too. */
export function openMarketplace(
  platform: Pick<Simulator, 'baseUrl' | 'authUrl'>,
  options: SceneOptions = {},
): Marketplace {
  const { app, platform: platformOptions, ...rest } = options
  const { baseUrl, authUrl } = platform
  const marketplace = createMarketplace({
    store: 'sqlite::memory:',
    deliverySecrets: DELIVERY_SECRET,
    closeTimeoutMs: 500,
    ...rest,
    ...internals({ callTimeoutMs: 2_000, pollMs: 50, ...(rest as { [INTERNALS]?: object })[INTERNALS] }),
    app: { ...CLIENT, purchasableUid: OUR_ITEM, codeName: 'ours', ...app },
    platform: { baseUrl, authUrl, ...platformOptions },
  })
  onCleanUp(() => marketplace.close())
  return marketplace
}

export async function deliver(target: string, body: unknown) {
  const response = await fetch(target, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const { status, headers } = response
  const parsed = (await response.json()) as Record<string, unknown>
  return { status, headers, body: parsed, id: String(parsed.id) }
}
