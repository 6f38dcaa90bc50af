import { pathToFileURL } from 'node:url'
import { PURCHASABLE_UID, SECRET } from './deliveries.mjs'
import { mountedAtX, serve, settings } from './serve.mjs'

/**
 * One of two builds of this package: `build` is its folder `dist/lib`. It uses only what every commit has, or finds it by
 * trying: the names of the public methods change. Handlers of uninstalls wait until `open` is asked.
 */
const { build, platformUrl, store, options = {} } = settings
const { createMarketplace } = await import(pathToFileURL(`${build}/index.js`))
const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench', purchasableUid: PURCHASABLE_UID, codeName: 'bench' },
  platform: { baseUrl: platformUrl, authUrl: platformUrl },
  deliverySecrets: SECRET,
  store,
  ...options,
})
const settled = marketplace.settled ?? marketplace.idle
let handled = 0
let lastAt = 0
let openedAt
let open
const opened = new Promise((resolve) => {
  open = resolve
})
function handle() {
  handled++
  lastAt = performance.now()
}
marketplace.onPurchaseChange(() => {})
if (options.worker !== false)
  marketplace.on('application/uninstalled', () => (openedAt ? handle() : opened.then(handle)))
await marketplace.start()

const answers = {
  isEntitled: (business) => marketplace.isEntitled(business),
  settled: async () => void (await settled()),
  open() {
    openedAt = performance.now()
    open()
  },
  drained: () => ({ handled, seconds: (lastAt - openedAt) / 1_000 }),
}
serve(mountedAtX(marketplace.router), answers, () => marketplace.close())
