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
import { createFrames } from './frames.js'
import { isStoryName, playStep, STORIES, setScene } from './stories.js'

/** How long a page waits before it connects again. */
const RETRY_MS = 1_000

const NO_BUTTON = 'This button does not exist'
const NO_STORY = 'This story does not exist'

/**
 * Serves the page, sends server-sent events (`begin`: the present state, and the timeline so far; `frame`: what follows), and
 * performs the actions of the buttons. Each reply has the number of the frame that shows its result. It listens on 127.0.0.1
 * only. Port 0 means a free port.
 */
export async function servePage(options: { demo: Demo; here: string; port: number }) {
  const { demo, here, port } = options
  const pages = new Set<Response>()
  const frames = createFrames({
    timeline: demo.timeline,
    state: () => presentState(demo, watcher),
    // The app calls its handler before the next question can show the change.
    prepare: ({ kind, business_uid }) =>
      kind === 'change' && business_uid ? watcher.ask(business_uid) : undefined,
    onFrame(frame) {
      for (const page of pages) send(page, 'frame', frame)
    },
  })
  const watcher = watchDecisions(demo, frames.changed)
  const stage = { ...demo, ...watcher, close: demo.close }
  const reply = (res: Response, why: string | null = null) =>
    res.status(why ? 409 : 200).json({ why, frame: frames.last() })

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
    send(res, 'begin', frames.begin())
    pages.add(res)
    res.on('close', () => pages.delete(res))
  })

  app.post('/businesses/:uid/actions/:action', (req, res) => {
    const { uid, action } = req.params
    reply(res, isActionName(action) && isBusiness(uid) ? demo.perform(action, uid) : NO_BUTTON)
  })
  app.get('/businesses/:uid/report', async (req, res) => {
    const { status, body } = await watcher.visit(req.params.uid)
    res.json({ status, body, frame: frames.last() })
  })
  app.post('/businesses/:uid/check', async (req, res) => {
    await demo.checkAgain(req.params.uid).catch(() => {})
    // Without a known subscription no event follows, so the watcher would not ask by itself.
    await watcher.ask(req.params.uid)
    reply(res)
  })
  app.post('/stories/:name/scene', async (req, res) => {
    const { name } = req.params
    reply(res, isStoryName(name) ? await setScene(stage, name) : NO_STORY)
  })
  app.post('/stories/:name/steps/:number', async (req, res) => {
    const { name, number } = req.params
    reply(res, isStoryName(name) ? await playStep(stage, name, Number(number)) : NO_STORY)
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
    reply(res, act ? null : NO_BUTTON)
  })

  const server = await new Promise<Server>((resolve, reject) => {
    const listening = app.listen(port, '127.0.0.1', (error) => (error ? reject(error) : resolve(listening)))
  })

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      frames.close()
      watcher.close()
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
    app: demo.app.state(),
    consoleUrl: demo.app.consoleUrl(),
    waitingDeliveries: demo.waitingDeliveries(),
    businesses: BUSINESSES.map(({ uid, name }) => {
      const standing = demo.standing(uid)
      const truth = { state: stateOf(standing), subscription_uid: standing.subscription?.uid ?? null }
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

function send(page: Response, event: 'begin' | 'frame', data: unknown) {
  page.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}
