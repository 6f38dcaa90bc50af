import type { Socket } from 'node:net'
import { describe, expect, it } from '@jest/globals'
import express5 from 'express'
import {
  chunked,
  dial,
  EVENT,
  exchange,
  express4,
  head,
  received,
  serve,
  TEXT,
} from '../support/receiving/bodies.js'

describe.each([
  ['Express 4', express4],
  ['Express 5', express5],
])('a body on %s', (_name, express) => {
  it('in many chunks, split inside characters, is put together again', async () => {
    const { port, kept } = await serve(express)
    const reply = await exchange(port, head({ 'transfer-encoding': 'chunked' }) + chunked(TEXT, 1))
    expect(reply).toMatch(/ 200 /)
    expect(kept).toEqual([{ value: EVENT, text: TEXT }])
  })

  it('after Expect: 100-continue is read', async () => {
    const { port, kept } = await serve(express)
    const socket = await dial(port)
    socket.write(head({ expect: '100-continue', 'content-length': Buffer.byteLength(TEXT) }))
    expect(await received(socket, /\r\n\r\n/)).toMatch(/^HTTP\/1\.1 100 /)
    socket.write(TEXT)
    expect(await received(socket, /\r\n\r\n.*}$/s)).toMatch(/^HTTP\/1\.1 200 /)
    expect(kept).toHaveLength(1)
  })

  it('B1 with a content length above the limit gets 413 before any of it is sent, and the connection closes', async () => {
    const { port } = await serve(express)
    const socket = await dial(port)
    socket.write(head({ 'content-length': 65_537 }))
    const reply = await closed(socket)
    expect(reply).toMatch(/^HTTP\/1\.1 413 .*\r\nconnection: close\r\n.*body_too_large/is)
  })

  it('B2 without an end gets 413 at the limit, and the connection closes', async () => {
    const { port, kept } = await serve(express)
    const socket = await dial(port)
    const chunk = `4000\r\n${' '.repeat(0x4000)}\r\n`
    let sent = 0
    const send = () => {
      while (!socket.destroyed && socket.writable && socket.write(chunk)) sent += 0x4000
    }
    socket.on('drain', send)
    socket.write(head({ 'transfer-encoding': 'chunked' }))
    send()
    const reply = await closed(socket)
    expect(reply).toMatch(/^HTTP\/1\.1 413 .*\r\nconnection: close\r\n/is)
    expect(sent).toBeGreaterThan(65_536)
    expect(kept).toEqual([])
  })

  it('B1 with a content length above the limit lets its sender finish writing before it reads the 413', async () => {
    const outcomes: string[] = []
    const { port } = await serve(express, { options: { count: (outcome) => outcomes.push(outcome) } })
    const socket = await dial(port)
    socket.write(head({ 'content-length': 200_000 }))
    await until(() => outcomes.length === 1)
    for (let i = 0; i < 20; i++) {
      await new Promise((resolve) => socket.write(' '.repeat(10_000), resolve))
      await new Promise(setImmediate)
    }
    expect(await closed(socket)).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('that ends too early is not stored and does no harm', async () => {
    const outcomes: string[] = []
    const { port, post, kept } = await serve(express, {
      options: { count: (outcome) => outcomes.push(outcome) },
    })
    const reset = await dial(port)
    reset.write(`${head({ 'content-length': 1_000 })}{"a":`)
    reset.resetAndDestroy()
    const ended = await dial(port)
    ended.end(`${head({ 'transfer-encoding': 'chunked' })}5\r\n{"a":\r\n`)
    await closed(ended)
    await until(() => outcomes.length === 2)
    expect(outcomes).toEqual(['body_incomplete', 'body_incomplete'])
    await post(TEXT).expect(200)
    expect(kept).toHaveLength(1)
  })
})

/** Resolves with all data when the other side closes. */
async function closed(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (data) => {
    text += data
  })
  await new Promise((resolve) => socket.on('close', resolve))
  return text
}

async function until(isTrue: () => boolean, deadline = Date.now() + 5_000): Promise<void> {
  while (!isTrue()) {
    if (Date.now() > deadline) throw new Error('not true within 5 s')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
