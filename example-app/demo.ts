/**
 * `npm run demo`: the app, a simulated platform, and a page to play with both. PORT chooses its port.
 * `npm run demo -- --once`: plays the life of a subscription, and exits 0 only if every decision was right.
 */
import { dirname } from 'node:path'
import { BUSINESSES } from './businesses.js'
import { lifeOf } from './life.js'
import { servePage } from './page-server.js'
import { exitCodeOf, play } from './play.js'
import { createPrinter } from './printer.js'
import { openStage, type Stage } from './stage.js'
import { wordsOfDecision } from './words.js'

async function main(): Promise<number> {
  const stage = await openStage({ here: dirname(process.argv[1] as string) })
  const interrupted = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => resolve())
    // The reader of the output has ended (`| head`). Without this listener the process would end without removing its database.
    process.stdout.on('error', () => resolve())
  })
  try {
    if (!process.argv.includes('--once')) return await stayOpen(stage, interrupted)
    return await Promise.race([playOnce(stage), interrupted.then(() => INTERRUPTED)])
  } finally {
    await stage.close()
  }
}

/** The exit code of a process that Ctrl-C has ended. */
const INTERRUPTED = 130

async function playOnce(stage: Stage): Promise<0 | 1> {
  const { timeline } = stage
  const [business] = BUSINESSES
  const printer = createPrinter(process.stdout)
  timeline.listen(printer.happening)
  printer.heading(`The life of a subscription of ${business.name}`)
  await stage.startApp()

  const verdicts = await play({
    steps: lifeOf(business.uid, stage),
    stage: {
      happenings: timeline.all,
      listen: timeline.listen,
      async observe() {
        const decision = await stage.decision(business.uid)
        timeline.add(wordsOfDecision(decision))
        const { status: report } = await stage.report(business.uid)
        return { decision, report }
      },
    },
    onStep: printer.heading,
    onVerdict({ faults }) {
      if (faults.length === 0) printer.good('as expected')
      for (const fault of faults) printer.bad(fault)
    },
  })

  const right = verdicts.filter(({ faults }) => faults.length === 0).length
  printer.heading(`${right} of ${verdicts.length} decisions were right`)
  return exitCodeOf(verdicts)
}

async function stayOpen(stage: Stage, interrupted: Promise<void>): Promise<0> {
  await stage.startApp()
  const page = await servePage({
    stage,
    here: dirname(process.argv[1] as string),
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
