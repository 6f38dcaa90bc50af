import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import express, { type Response } from 'express'
import { isActionName, stateOf, whyNotAll } from './actions.js'
import { BUSINESSES } from './businesses.js'
import type { Stage } from './stage.js'
import { watchDecisions } from './watcher.js'

/** At most this often a new state goes to the page; what happens in between is in the next one. */
const STATE_EVERY_MS = 40

/**
 * Serves the page, tells it what happens as server-sent events (`state`: how all stands; `happening`: one line of the
 * timeline), and does what its buttons ask. It listens on 127.0.0.1 only; port 0 takes a free one.
 */
export async function servePage(options: { stage: Stage; here: string; port: number }) {
  const { stage, here, port } = options
  const pages = new Set<Response>()
  let stateTimer: NodeJS.Timeout | undefined
  const watcher = watchDecisions(stage, () => {
    stateTimer ??= setTimeout(() => {
      stateTimer = undefined
      for (const page of pages) send(page, 'state', state())
    }, STATE_EVERY_MS)
  })
  const unlisten = stage.timeline.listen((happening) => {
    for (const page of pages) send(page, 'happening', happening)
  })

  function state() {
    return {
      isCutOff: stage.isCutOff(),
      isSlow: stage.isSlow(),
      isAppRunning: stage.app.isRunning(),
      businesses: BUSINESSES.map(({ uid, name }) => {
        const standing = stage.standing(uid)
        const truth = { state: stateOf(standing), presence: standing.presence }
        return { uid, name, truth, whyNot: whyNotAll(standing), ...watcher.of(uid) }
      }),
    }
  }

  const app = express()
  app.disable('x-powered-by')
  app.use((_req, res, next) => {
    res.set('Content-Security-Policy', "default-src 'self'; frame-ancestors 'none'")
    res.set('Cache-Control', 'no-store')
    next()
  })
  app.use(express.static(join(here, 'page')))

  app.get('/happenings', (_req, res) => {
    res.set('Content-Type', 'text/event-stream').flushHeaders()
    send(res, 'state', state())
    for (const happening of stage.timeline.all()) send(res, 'happening', happening)
    pages.add(res)
    res.on('close', () => pages.delete(res))
  })

  app.post('/businesses/:uid/actions/:action', (req, res) => {
    const { uid, action } = req.params
    const why =
      isActionName(action) && isBusiness(uid) ? stage.perform(action, uid) : 'There is no such button'
    res.status(why ? 409 : 200).json({ why })
  })
  app.get('/businesses/:uid/report', async (req, res) => {
    const report = await stage.report(req.params.uid).catch(() => ({ status: 0, body: null }))
    res.json(report)
  })
  app.post('/businesses/:uid/check', async (req, res) => {
    await stage.checkAgain(req.params.uid).catch(() => {})
    // Also where nothing is known, and so nothing happens that would make it ask.
    await watcher.ask(req.params.uid)
    res.json({ why: null })
  })
  const switches: Record<string, () => unknown> = {
    cutOff: stage.cutOff,
    bringBack: stage.bringBack,
    slowDown: stage.slowDown,
    speedUp: stage.speedUp,
    killApp: stage.killApp,
    startApp: stage.startApp,
  }
  app.post('/stage/:action', async (req, res) => {
    const act = Object.hasOwn(switches, req.params.action) ? switches[req.params.action] : undefined
    await act?.()
    res.status(act ? 200 : 404).json({ why: act ? null : 'There is no such button' })
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

function isBusiness(uid: string): boolean {
  return BUSINESSES.some((business) => business.uid === uid)
}

function send(page: Response, event: 'state' | 'happening', data: unknown) {
  page.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}
