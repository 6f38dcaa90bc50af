import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { createGzip } from 'node:zlib'
import { afterEach, describe, expect, it, jest } from '@jest/globals'
import { jsonLines, runCliHere, settingsFor } from '../support/processes/cli.js'
import { serve, startPlatform } from '../support/scene.js'
import { until } from '../support/until.js'

const CHUNK = Buffer.alloc(64 * 1024, ' ')
const MOST_SENT = 16 * 1024 * 1024

afterEach(() => {
  jest.restoreAllMocks()
})

describe('K177 a reply that the command line reads', () => {
  it.each(['plain', 'compressed'] as const)(
    'of an app ends at a limit of bytes: endless, %s',
    async (form) => {
      const app = await endless(form)
      const env = settingsFor(await startPlatform(), 'sqlite:none.db')
      const sent = await runCliHere(['simulate', 'application/installed', '--to', app.url, '--json'], { env })
      expect(sent.code).toBe(0)
      expect(jsonLines(sent.stdout)).toMatchObject([{ status: 200, id: null, code: null, issues: null }])
      const examined = await runCliHere(['doctor', '--public-url', app.url, '--json'], { env })
      expect(examined.stdout).toContain('the reply was 200, but not from this package')
      await until('both connections are closed', () => app.closed === 2)
      expect(app.bytes).toBeLessThan(MOST_SENT)
    },
  )

  it('of the platform ends at a limit of bytes', async () => {
    const platform = await endless('plain')
    const address = new URL(platform.url).origin
    const env = settingsFor({ baseUrl: address, authUrl: address }, 'sqlite:none.db')
    const { code, stdout, stderr } = await runCliHere(
      ['register', 'https://my-app.example/hooks', '--business', 'b1'],
      { env },
    )
    expect(code).toBe(3)
    expect(stdout + stderr).toContain('larger than')
    await until('the connection is closed', () => platform.closed > 0)
    expect(platform.bytes).toBeLessThan(MOST_SENT)
  })

  it('ends at a limit of time, also while bytes arrive', async () => {
    const { timeout } = AbortSignal
    jest.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout.call(AbortSignal, 200))
    let closed = 0
    const app = await serve((_req, res) => {
      res.writeHead(200)
      const timer = setInterval(() => res.write(' '), 20)
      res.on('close', () => {
        clearInterval(timer)
        closed++
      })
    })
    const args = ['simulate', 'application/installed', '--to', `${app}/hooks`]
    const { code, stdout } = await runCliHere(args, {
      env: settingsFor(await startPlatform(), 'sqlite:none.db'),
    })
    expect({ code, stdout }).toEqual({ code: 3, stdout: expect.stringContaining('no answer within') })
    await until('the connection is closed', () => closed === 1)
  })

  it.each([
    { id: { a: 1 }, issues: 5, code: ['x'] },
    { id: 7, issues: 'abc', code: null },
    { id: null, issues: [1, { a: 1 }, null], code: { toString: 1 } },
    [],
    'text',
    null,
  ])('of another program may have any values: %j', async (reply) => {
    const app = await serve((_req, res) => void res.end(JSON.stringify(reply)))
    const env = settingsFor(await startPlatform(), 'sqlite:none.db')
    const args = ['simulate', 'application/installed', '--to', `${app}/hooks`]
    const { code, stdout, stderr } = await runCliHere(args, { env })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^application\/installed: 200 in \d+ ms\n$/)
    expect(await runCliHere([...args, '--json'], { env })).toMatchObject({ code: 0, stderr: '' })
  })
})

/** A server whose replies never end, with the bytes that it has written and the connections that were closed. */
async function endless(form: 'plain' | 'compressed') {
  const seen = { url: '', bytes: 0, closed: 0 }
  const answer: RequestListener = (req: IncomingMessage, res: ServerResponse) => {
    req.resume()
    res.writeHead(200, form === 'compressed' ? { 'content-encoding': 'gzip' } : {})
    const body = form === 'compressed' ? createGzip() : res
    if (body !== res) body.pipe(res)
    let isOpen = true
    res.on('close', () => {
      isOpen = false
      seen.closed++
    })
    const write = () => {
      while (isOpen) {
        seen.bytes += CHUNK.length
        if (!body.write(CHUNK)) break
      }
      if (isOpen) body.once('drain', write)
    }
    write()
  }
  seen.url = `${await serve(answer)}/hooks`
  return seen
}
