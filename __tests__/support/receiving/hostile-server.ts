import { type ChildProcess, spawn } from 'node:child_process'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { join } from 'node:path'
import { afterAll, beforeAll } from '@jest/globals'
import { onCleanUp } from '../clean-up.js'
import { EVAL_TYPESCRIPT } from '../processes/processes.js'
import { until } from '../until.js'

/** What the server reported, such as its end. */
export const events: string[] = []

export const NODE = [...EVAL_TYPESCRIPT, `require(${JSON.stringify(join(__dirname, 'doors-child.ts'))})`]

export type ServerName = 'http' | 'express4' | 'express5' | 'h2c' | 'tls'

export let child: ChildProcess

export let ports: Record<ServerName, number>

beforeAll(async () => {
  child = spawn(process.execPath, NODE, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  child.on('exit', (code, signal) => events.push(`the process ended: ${signal ?? code}`))
  const listening = new Promise<void>((resolve) => {
    child.on('message', (message: { is: string; ports: typeof ports; event: string; text: string }) => {
      if (message.is === 'event') events.push(`${message.event}: ${message.text}`)
      else {
        ports = message.ports
        resolve()
      }
    })
  })
  await listening
})

afterAll(() => void child?.kill('SIGKILL'))

export function dialHttp2(
  name: ServerName,
  settings: { initialWindowSize?: number } = {},
): ClientHttp2Session {
  const scheme = name === 'tls' ? 'https' : 'http'
  const session = connectHttp2(`${scheme}://127.0.0.1:${ports[name]}`, {
    rejectUnauthorized: false,
    settings,
  })
  session.on('error', () => {})
  onCleanUp(() => session.destroy())
  return session
}

export async function exchange(session: ClientHttp2Session, headers: Record<string, string>, body?: string) {
  const stream = session.request(headers, { endStream: body === undefined })
  stream.on('error', () => {})
  let text = ''
  let reply: Record<string, unknown> = {}
  stream.setEncoding('utf8')
  stream.on('response', (given) => {
    reply = given
  })
  stream.on('data', (data) => {
    text += data
  })
  if (body !== undefined) stream.end(body)
  let isClosed = false
  stream.on('close', () => {
    isClosed = true
  })
  await until('the stream is closed', () => isClosed)
  return { ...reply, status: reply[':status'], body: text }
}
