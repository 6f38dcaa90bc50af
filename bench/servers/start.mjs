/** Measures how long an app waits for the package at its start. Sends one message and ends. */
const { store, platformUrl } = JSON.parse(process.argv[2])
const beganAt = performance.now()
const { createMarketplace } = await import('../../dist/lib/index.js')
const importedAt = performance.now()
const marketplace = createMarketplace({
  app: { clientId: 'bench', clientSecret: 'bench' },
  platform: { baseUrl: platformUrl, authUrl: platformUrl },
  deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
  store,
})
const createdAt = performance.now()
await marketplace.start()
const startedAt = performance.now()
process.send({
  answer: {
    importMs: importedAt - beganAt,
    createMs: createdAt - importedAt,
    startMs: startedAt - createdAt,
    totalMs: startedAt - beganAt,
  },
})
process.on('disconnect', async () => {
  await marketplace.close()
  process.exit()
})
