import { describe, expect, it } from '@jest/globals'
import { MINUTE, SECOND } from '../../lib/base/clock.js'
import { createNotifications } from '../../lib/postgres/notifications.js'
import type { Hint } from '../../lib/store/port/store.js'
import { ANYTHING } from '../../lib/store/sql/engine.js'
import { CHANNEL, createListeningServer } from '../support/engines/listening-server.js'
import { createVirtualClock } from '../support/machine/virtual-clock.js'
import { gate } from '../support/until.js'

describe('a listener', () => {
  it('begins with the hint that anything may have changed, after its own echo has arrived', async () => {
    const { hints, server } = await listening()
    expect(hints).toEqual(ANYTHING)
    expect(server.messages()).toEqual(['<self> echo'])
  })

  it.each<[string, Hint]>([
    ['journal', { kind: 'journal' }],
    ['requested', { kind: 'requested', businessUid: null }],
    ['requested a%20b', { kind: 'requested', businessUid: 'a b' }],
    ['decided b', { kind: 'decided', businessUid: 'b', superseded: false }],
    ['superseded b', { kind: 'decided', businessUid: 'b', superseded: true }],
    ['superseded', { kind: 'decided', businessUid: null, superseded: true }],
    ['decided %E0%A4%A', { kind: 'decided', businessUid: null, superseded: false }],
  ])('passes on the message of another process: %s', async (text, hint) => {
    const { hints, server } = await listening()
    hints.length = 0
    server.notify(`another ${text}`)
    expect(hints).toEqual([hint])
  })

  it('ignores messages that are unknown, its own, or of another channel', async () => {
    const { hints, server, self } = await listening()
    hints.length = 0
    for (const payload of [
      '',
      ' ',
      'journal',
      'another',
      'another gossip b',
      'another echo',
      `${self()} journal`,
    ])
      server.notify(payload)
    server.notify('another journal', 'elsewhere')
    server.notify(undefined)
    expect(hints).toEqual([])
  })

  it('listens once, however often it is started, and even with two connections', async () => {
    const { clock, server, hints, listener } = listenerOn()
    for (let i = 0; i < 3; i++) listener.start((hint) => hints.push(hint))
    await clock.advance(SECOND)
    expect([server.listens(), hints]).toEqual([1, ANYTHING])
  })

  it('does not mistake the echo of another process for its own', async () => {
    const { clock, server, hints, listener } = listenerOn()
    server.isPooler = true
    listener.start((hint) => hints.push(hint))
    await clock.advance(SECOND)
    server.isPooler = false
    server.notify('another echo')
    await clock.advance(SECOND)
    expect([server.destroyed(), hints]).toEqual([1, []])
  })
})

describe('the hints that a listener sends', () => {
  it('are collected for 20 ms, each once, in one message to the server', async () => {
    const { clock, server, listener } = await listening()
    listener.announce({ kind: 'journal' })
    listener.announce({ kind: 'journal' })
    listener.announce({ kind: 'requested', businessUid: 'a b' })
    listener.announce({ kind: 'decided', businessUid: 'b', superseded: false })
    listener.announce({ kind: 'decided', businessUid: 'b', superseded: true })
    await clock.advance(19)
    expect(server.sends()).toBe(1)
    await clock.advance(1)
    expect(server.messages().slice(1)).toEqual([
      '<self> journal',
      '<self> requested a%20b',
      '<self> decided b',
      '<self> superseded b',
    ])
    expect(server.sends()).toBe(2)
    listener.announce({ kind: 'journal' })
    await clock.advance(20)
    expect(server.messages().at(-1)).toBe('<self> journal')
    expect(server.sends()).toBe(3)
  })

  it('name no business if one of any business waits, or twenty do', async () => {
    const { clock, server, listener } = await listening()
    listener.announce({ kind: 'requested', businessUid: null })
    listener.announce({ kind: 'requested', businessUid: 'a' })
    await clock.advance(20)
    expect(server.messages().slice(1)).toEqual(['<self> requested'])
    for (let i = 0; i < 30; i++) listener.announce({ kind: 'requested', businessUid: `b${i}` })
    await clock.advance(20)
    expect(server.messages().slice(2)).toEqual([
      ...Array.from({ length: 20 }, (_, i) => `<self> requested b${i}`),
      '<self> requested',
    ])
  })

  it('may be lost', async () => {
    const { clock, server, listener } = await listening()
    server.refuses = true
    listener.announce({ kind: 'journal' })
    await clock.advance(20)
    server.refuses = false
    listener.announce({ kind: 'journal' })
    await clock.advance(20)
    expect(server.messages().slice(1)).toEqual(['<self> journal'])
    expect(server.borrowed()).toBe(1)
  })

  it('are not sent before the start and after the end', async () => {
    const { clock, server, listener, hints } = listenerOn()
    listener.announce({ kind: 'journal' })
    await listener.close()
    await clock.advance(SECOND)
    expect(server.taken()).toBe(0)
    listener.start((hint) => hints.push(hint))
    await clock.rest()
    listener.announce({ kind: 'journal' })
    await listener.close()
    listener.announce({ kind: 'journal' })
    await clock.advance(MINUTE)
    expect(server.messages()).toEqual(['<self> echo'])
  })
})

describe('a listener whose connection', () => {
  it('is lost destroys it, and listens on another within a quarter of a second', async () => {
    const { clock, server, hints } = await listening()
    server.lose()
    expect(server.destroyed()).toBe(1)
    await clock.advance(SECOND / 4)
    expect(hints).toEqual([...ANYTHING, ...ANYTHING])
    await clock.advance(MINUTE)
    expect([server.listens(), server.borrowed()]).toEqual([2, 1])
  })

  it.each(['fails', 'does not listen any more'])(
    '%s at a heartbeat, after five seconds, is replaced',
    async (how) => {
      const { clock, server } = await listening()
      await clock.advance(11 * SECOND)
      expect(server.listens()).toBe(1)
      if (how === 'fails') server.refuses = true
      else server.isDeaf = true
      await clock.advance(4 * SECOND)
      server.refuses = false
      server.isDeaf = false
      await clock.advance(MINUTE / 2)
      expect([server.destroyed() > 0, server.listens() > 1, server.borrowed()]).toEqual([true, true, 1])
    },
  )

  it.each(['is lost', 'is closed'])('%s during a heartbeat has no second heartbeat', async (how) => {
    const { clock, server, listener } = await listening()
    const heartbeat = gate()
    server.heartbeat = heartbeat.opened
    await clock.advance(5 * SECOND)
    if (how === 'is lost') server.lose()
    else await listener.close()
    heartbeat.open()
    await clock.advance(MINUTE)
    expect([server.misused(), server.borrowed()]).toEqual([0, how === 'is lost' ? 1 : 0])
  })

  it('cannot be opened tries again, with pauses of at most half a minute', async () => {
    const { clock, server, listener, hints } = listenerOn()
    server.isDown = true
    listener.start((hint) => hints.push(hint))
    await clock.advance(10 * MINUTE)
    expect(server.taken()).toBeGreaterThan(20)
    expect(server.taken()).toBeLessThan(400)
    server.isDown = false
    await clock.advance(MINUTE / 2)
    expect(hints).toEqual(ANYTHING)
    expect(server.borrowed()).toBe(1)
  })
})

describe('a listener behind a pooler, which no message reaches,', () => {
  it('gives up after three echoes of two seconds, with one warning, and tries again every ten minutes', async () => {
    const { clock, server, listener, hints, warnings } = listenerOn()
    server.isPooler = true
    listener.start((hint) => hints.push(hint))
    await clock.advance(2 * SECOND - 1)
    expect([server.listens(), server.destroyed()]).toEqual([1, 0])
    await clock.advance(1)
    expect(server.destroyed()).toBe(1)
    await clock.advance(10 * SECOND)
    expect([server.listens(), server.destroyed(), warnings]).toEqual([3, 3, ['listen_unavailable']])
    await clock.advance(9 * MINUTE)
    expect(server.listens()).toBe(3)
    await clock.advance(MINUTE + 10 * SECOND)
    expect([server.listens(), warnings, hints]).toEqual([4, ['listen_unavailable'], []])
    server.isPooler = false
    await clock.advance(10 * MINUTE)
    expect([server.listens(), hints]).toEqual([5, ANYTHING])
  })

  it('that once works counts lost echoes from zero', async () => {
    const { clock, server, warnings } = await listening()
    for (let round = 0; round < 3; round++) {
      server.isPooler = true
      server.lose()
      await clock.advance(SECOND)
      server.isPooler = false
      await clock.advance(5 * SECOND)
    }
    expect(warnings).toEqual([])
  })
})

describe('the end of a listener', () => {
  it('returns a connection that does not listen any more, and leaves no timer', async () => {
    const { clock, server, listener, hints } = await listening()
    hints.length = 0
    listener.announce({ kind: 'journal' })
    await listener.close()
    expect([server.borrowed(), server.destroyed(), server.unlistens()]).toEqual([0, 0, 1])
    await clock.advance(10 * MINUTE)
    expect([server.taken(), hints]).toEqual([2, []])
  })

  it.each([
    ['while it connects returns the connection', {}, 0],
    ['while it fails to connect ends the tries', { isDown: true }, 0],
    ['while its echo is under way begins nothing new', { isPooler: true }, 1],
  ])('%s', async (_what, state, listens) => {
    const { clock, server, listener, hints, warnings } = listenerOn()
    Object.assign(server, state)
    listener.start((hint) => hints.push(hint))
    if (listens > 0) await clock.advance(SECOND)
    await listener.close()
    const taken = server.taken()
    await clock.advance(MINUTE)
    expect([server.borrowed(), server.listens(), server.taken()]).toEqual([0, listens, taken])
    expect([hints, warnings]).toEqual([[], []])
  })

  it('during a pause ends the tries', async () => {
    const { clock, server, listener } = await listening()
    server.lose()
    await listener.close()
    await clock.advance(MINUTE)
    expect([server.listens(), server.borrowed()]).toEqual([1, 0])
  })
})

async function listening() {
  const made = listenerOn()
  made.listener.start((hint) => made.hints.push(hint))
  await made.clock.rest()
  return made
}

/** A listener and its server, which passes messages to all connections that listen. */
function listenerOn() {
  const clock = createVirtualClock({ isBusy: () => false })
  const hints: Hint[] = []
  const warnings: string[] = []
  const server = createListeningServer()
  const listener = createNotifications({
    connections: { acquire: server.acquire, works: async () => {}, close: async () => {} },
    channel: CHANNEL,
    clock: clock.forProcess(),
    warn: (code) => void warnings.push(code),
  })
  return { clock, hints, warnings, server, listener, self: server.self }
}
