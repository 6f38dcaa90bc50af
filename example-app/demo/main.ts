/**
 * `npm run demo`: the app, a simulated platform, and a page to play with both. PORT chooses its port.
 * `npm run demo -- --once`: plays the life of a subscription, and exits 0 only if every decision was right.
 */
import { dirname, extname, join } from 'node:path'
import { BUSINESSES } from './businesses.js'
import { type Demo, openDemo } from './demo.js'
import { servePage } from './page-server.js'
import { exitCodeOf, play } from './run-scenario.js'
import { scenarioOf } from './scenario.js'
import { createTerminalLog } from './terminal-log.js'
import { textOfDecision } from './timeline-texts.js'

const SCRIPT = process.argv[1] as string
const HERE = dirname(SCRIPT)

async function main(): Promise<number> {
  // In the package the scripts are JavaScript.
  const demo = await openDemo({ appScript: join(HERE, '..', `server${extname(SCRIPT)}`) })
  const interrupted = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => resolve())
    // The reader of the output has ended (`| head`). Without this listener the process would end without removing its database.
    process.stdout.on('error', () => resolve())
  })
  try {
    if (!process.argv.includes('--once')) return await stayOpen(demo, interrupted)
    return await Promise.race([playOnce(demo), interrupted.then(() => INTERRUPTED)])
  } finally {
    await demo.close()
  }
}

/** The exit code of a process that Ctrl-C has ended. */
const INTERRUPTED = 130

async function playOnce(demo: Demo): Promise<0 | 1> {
  const { timeline } = demo
  const [business] = BUSINESSES
  const log = createTerminalLog(process.stdout)
  timeline.listen(log.happening)
  log.heading(`The life of a subscription of ${business.name}`)
  await demo.startApp()

  const verdicts = await play({
    steps: scenarioOf(business.uid, demo),
    demo: {
      happenings: timeline.all,
      listen: timeline.listen,
      async observe() {
        const decision = await demo.decision(business.uid)
        timeline.add(textOfDecision(decision))
        const { status: report } = await demo.report(business.uid)
        return { decision, report }
      },
    },
    onStep: log.heading,
    onVerdict({ faults }) {
      if (faults.length === 0) log.good('as expected')
      for (const fault of faults) log.bad(fault)
    },
  })

  const right = verdicts.filter(({ faults }) => faults.length === 0).length
  log.heading(`${right} of ${verdicts.length} decisions were right`)
  return exitCodeOf(verdicts)
}

async function stayOpen(demo: Demo, interrupted: Promise<void>): Promise<0> {
  await demo.app.start()
  const page = await servePage({
    demo,
    here: HERE,
    port: Number(process.env.PORT ?? 0),
  })
  console.log(`Open ${page.url}`)
  console.log('Ctrl-C ends the demo and removes its database.')
  await interrupted
  await page.close()
  return 0
}

main().then(
  // Not `exitCode`: an interrupted play must not continue.
  (exitCode) => process.exit(exitCode),
  (error) => {
    console.error(error)
    process.exitCode = 1
  },
)
