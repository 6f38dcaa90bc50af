/** `npm run demo`: the app, a simulated platform, and a page to play with both. PORT chooses its port. */
import { dirname } from 'node:path'
import { openDemo } from './demo.js'
import { servePage } from './page-server.js'

async function main() {
  const here = dirname(process.argv[1] as string)
  const interrupted = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => resolve())
    // The reader of the output has ended (`| head`). Without this listener the process would end without removing its database.
    process.stdout.on('error', () => resolve())
  })
  const demo = await openDemo({ here })
  try {
    await demo.startApp()
    const page = await servePage({ demo, here, port: Number(process.env.PORT ?? 0) })
    console.log(`Open ${page.url}`)
    console.log('Ctrl-C ends the demo and removes its database.')
    await interrupted
    await page.close()
  } finally {
    await demo.close()
  }
}

main().then(
  () => process.exit(),
  (error) => {
    console.error(error)
    process.exitCode = 1
  },
)
