import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import express, { type Response } from 'express'
import { REASONS } from '../../lib/index.js'
import { isActionName, stateOf, whyNotAll } from './business-actions.js'
import { BUSINESSES } from './businesses.js'
import { readCode } from './code-pieces.js'
import { watchDecisions } from './decision-watcher.js'
import type { Demo } from './demo.js'
import { isStoryName, playStep, STORIES } from './stories.js'

/** The least time between two states that are sent to the page. */
const STATE_EVERY_MS = 40

/** How long a page waits before it connects again. */
const RETRY_MS = 1_000

/**
 * Serves the page, sends server-sent events (`state`: the present state; `past`: the timeline so far; `happening`: its next
 * line), and performs the actions of the buttons. It listens on 127.0.0.1 only. Port 0 means a free port.
 */
export async function servePage(options: { demo: Demo; here: string; port: number }) {
  const { demo, here, port } = options
  const pages = new Set<Response>()
  let stateTimer: NodeJS.Timeout | undefined
  const watcher = watchDecisions(demo, () => {
    stateTimer ??= setTimeout(() => {
      stateTimer = undefined
      for (const page of pages) send(page, 'state', state())
    }, STATE_EVERY_MS)
  })
  const unlisten = demo.timeline.listen((happening) => {
    for (const page of pages) send(page, 'happening', happening)
  })

  const state = () => presentState(demo, watcher)

  const app = express()
  app.disable('x-powered-by')
  app.use((_req, res, next) => {
    res.set('Content-Security-Policy', "default-src 'self'; frame-ancestors 'none'")
    res.set('Cache-Control', 'no-store')
    next()
  })
  app.use(express.static(join(here, 'page')))
  // The style of the console.
  app.get('/look.css', (_req, res) =>
    res.sendFile(join(here, '..', '..', 'lib', 'console', 'page', 'css', 'look.css')),
  )
  const guide = {
    stories: Object.entries(STORIES).map(([name, story]) => ({ name, ...story })),
    code: await readCode(join(here, '..')),
  }
  app.get('/guide', (_req, res) => void res.json(guide))

  app.get('/happenings', (_req, res) => {
    res.set('Content-Type', 'text/event-stream').flushHeaders()
    res.write(`retry: ${RETRY_MS}\n\n`)
    send(res, 'state', state())
    send(res, 'past', demo.timeline.all())
    pages.add(res)
    res.on('close', () => pages.delete(res))
  })

  app.post('/businesses/:uid/actions/:action', (req, res) => {
    const { uid, action } = req.params
    const why =
      isActionName(action) && isBusiness(uid) ? demo.perform(action, uid) : 'This button does not exist'
    res.status(why ? 409 : 200).json({ why })
  })
  app.get('/businesses/:uid/report', async (req, res) => {
    res.json(await demo.visit(req.params.uid))
  })
  app.post('/businesses/:uid/check', async (req, res) => {
    await demo.checkAgain(req.params.uid).catch(() => {})
    // Without a known subscription no event follows, so the watcher would not ask by itself.
    await watcher.ask(req.params.uid)
    res.json({ why: null })
  })
  app.post('/stories/:name/steps/:number', async (req, res) => {
    const { name, number } = req.params
    const why = isStoryName(name) ? await playStep(demo, name, Number(number)) : 'This story does not exist'
    res.status(why ? 409 : 200).json({ why })
  })
  const switches: Record<string, () => unknown> = {
    cutOff: demo.cutOff,
    bringBack: demo.bringBack,
    slowDown: demo.slowDown,
    speedUp: demo.speedUp,
    killApp: demo.killApp,
    startApp: demo.startApp,
  }
  app.post('/demo/:action', async (req, res) => {
    const act = Object.hasOwn(switches, req.params.action) ? switches[req.params.action] : undefined
    await act?.()
    res.status(act ? 200 : 404).json({ why: act ? null : 'This button does not exist' })
  })

  const server = await new Promise<Server>((resolve, reject) => {
    const listening = app.listen(port, '127.0.0.1', (error) => (error ? reject(error) : resolve(listening)))
  })

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      unlisten()
      watcher.close()
      clearTimeout(stateTimer)
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** What the page shows, apart from the timeline. */
function presentState(demo: Demo, watcher: ReturnType<typeof watchDecisions>) {
  return {
    isCutOff: demo.isCutOff(),
    isSlow: demo.isSlow(),
    isAppRunning: demo.app.isRunning(),
    consoleUrl: demo.app.consoleUrl(),
    waitingDeliveries: demo.waitingDeliveries(),
    businesses: BUSINESSES.map(({ uid, name }) => {
      const standing = demo.standing(uid)
      const truth = { state: stateOf(standing), presence: standing.presence }
      const watched = watcher.of(uid)
      // Not `explanation`: its ages would be wrong after a while on the page.
      const words = watched.decision && REASONS[watched.decision.reason].meaning
      return { uid, name, truth, whyNot: whyNotAll(standing), ...watched, words }
    }),
  }
}

function isBusiness(uid: string): boolean {
  return BUSINESSES.some((business) => business.uid === uid)
}

function send(page: Response, event: 'state' | 'past' | 'happening', data: unknown) {
  page.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}
