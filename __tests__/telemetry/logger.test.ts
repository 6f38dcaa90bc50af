import { Console } from 'node:console'
import { Writable } from 'node:stream'
import { describe, expect, it } from '@jest/globals'
import { type Clock, systemClock } from '../../lib/base/clock.js'
import { ConfigError, createMarketplace, type Logger } from '../../lib/index.js'
import { createTelemetry } from '../../lib/telemetry/telemetry.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { onCleanUp } from '../support/clean-up.js'
import { captureDebug, quietWarnings } from '../support/output.js'
import { CLIENT, createScene, serve } from '../support/scene.js'
import { until } from '../support/until.js'

describe('the logger', () => {
  it('gets warnings and failures as (fields, message)', async () => {
    quietWarnings()
    const { logger, lines } = collecting()
    const { marketplace, deliver } = await createScene({ logger, handlers: { retryDelaysMs: [] } })
    marketplace.on('application/installed', () => {
      throw new TypeError('the mail server is away')
    })
    const { id } = await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    expect(lines).toContainEqual([
      'warn',
      { code: 'handler_failed', stack: expect.stringMatching(/^TypeError at \S.*logger\.test\.ts:\d+:\d+/) },
      expect.stringMatching(/^A handler of event:application\/installed failed: the mail server is away\. /),
    ])
    expect(lines).toContainEqual([
      'error',
      { area: 'handling', code: 'dead', stack: expect.stringMatching(/^TypeError at /) },
      `event ${id}: TypeError: the mail server is away`,
    ])
  })

  it('gets at debug why the guard denies a request', async () => {
    const { logger, lines } = collecting()
    const { marketplace, app, url } = await createScene({ logger, worker: false })
    app.use('/paid', marketplace.requireEntitlement({ businessUid: () => 'b1' }))
    expect((await fetch(`${url}/paid`)).status).toBe(402)
    expect(lines).toEqual([
      ['debug', { area: 'gate', code: 'unknown_business' }, expect.stringMatching(/^unknown_business: /)],
    ])
  })

  it('gets what fails in the clock of the app', async () => {
    const { logger, lines } = collecting()
    let failures = 1
    const clock: Clock = {
      ...systemClock,
      setTimeout(callback, ms) {
        if (failures-- > 0) throw new Error('no timer')
        return systemClock.setTimeout(callback, ms)
      },
    }
    await createScene({ logger, clock })
    await until('the failure is reported', () => lines.length > 0)
    const stack = expect.stringContaining('logger.test')
    const message = 'A timer failed: Error, whose message may repeat what was received'
    expect(lines).toEqual([['error', { area: 'timers', code: 'unexpected', stack }, message]])
  })

  it('gets a change of health without a call of health()', async () => {
    quietWarnings()
    // The checks that come every 10 s come at once.
    const clock: Clock = {
      ...systemClock,
      setTimeout: (callback, ms) => systemClock.setTimeout(callback, ms === 10_000 ? 1 : ms),
    }
    const { logger, lines } = collecting()
    const marketplace = createMarketplace({
      app: CLIENT,
      platform: { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' },
      deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
      store: 'sqlite:/not/there/m.db',
      worker: false,
      logger,
      clock,
    })
    onCleanUp(() => marketplace.close())
    await until('the change is reported', () =>
      lines.some(([level, fields]) => level === 'error' && fields.status === 'failing'),
    )
  })

  it('may be console: the fields come before the message', async () => {
    quietWarnings()
    const written: string[] = []
    const stream = new Writable({
      write(chunk, _encoding, done) {
        written.push(String(chunk))
        done()
      },
    })
    const logger: Logger = new Console(stream, stream)
    const { marketplace, deliver } = await createScene({ logger, app: { purchasableUid: undefined } })
    expect(written.join('')).toMatch(/^\{ code: 'purchasable_uid_missing' \} app\.purchasableUid is not set/)
    marketplace.on('application/installed', () => {
      throw new Error('it fails')
    })
    await deliver(sampleDelivery('application/installed'))
    const failed = await until('a line of the failure', () =>
      written.find((line) => line.includes('handler_failed')),
    )
    expect(failed).toMatch(/^\{ code: 'handler_failed', stack: 'Error at [^\n]+' \} A handler of [^\n]+\n$/)
  })

  it('gets printable lines of bounded length, and DEBUG too, whatever a part of the package passes', () => {
    const emitted = quietWarnings()
    const debugged = captureDebug()
    const { logger, lines } = collecting()
    const odd = `one\n\u001b[2J\u202etwo\ud800${'x'.repeat(9_000)}`
    const telemetry = createTelemetry({ clock: systemClock, logger })
    telemetry.log('area', 'a class', () => ({ message: odd, stack: odd }), 'warn')
    telemetry.report('error', { status: odd }, odd)
    telemetry.warn('handler_failed', odd)
    telemetry.warn('handler_failed', () => ({ message: odd, stack: odd }), odd)
    const texts = [
      ...lines.flatMap(([, fields, message]) => [...Object.values(fields).map(String), message]),
      ...emitted.mock.calls.map(([message]) => String(message)),
    ]
    expect(texts).toHaveLength(13)
    for (const text of texts) expect(text).toMatch(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]{1,4000}$/u)
    expect(debugged).toHaveLength(1)
    expect(debugged[0]).toMatch(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]{1,8100}$/u)
  })

  it('L50 gets a bounded number of warnings and lines of 10,000 errors that all differ', () => {
    const emitted = quietWarnings()
    const debugged = captureDebug()
    const { logger, lines } = collecting()
    const telemetry = createTelemetry({ clock: systemClock, logger })
    for (let i = 0; i < 10_000; i++) {
      telemetry.warn('handler_failed', `text ${i}`, `class ${i}`)
      telemetry.failure('timers', Object.assign(new Error(`text ${i}`), { code: `E_${i}` }))
    }
    expect(emitted).toHaveBeenCalledTimes(21)
    expect(lines.map(([level]) => level).filter((level) => level === 'warn')).toHaveLength(21)
    expect([lines.length, debugged.length]).toEqual([22, 1])
  })

  it('gets a line of each class at once, of the same class after ten seconds, with the number of withheld ones', () => {
    captureDebug()
    const { logger, lines } = collecting()
    let now = 0
    const telemetry = createTelemetry({ clock: { monotonic: () => now }, logger })
    const log = (area: string, className: string) =>
      telemetry.log(area, className, () => ({ message: `${area} ${className}` }))
    const all = [
      ['one', 'a'],
      ['one', 'b'],
      ['two', 'a'],
    ] as const
    for (const [area, className] of [...all, ...all, ...all]) log(area, className)
    expect(lines.splice(0).map(([, , message]) => message)).toEqual(['one a', 'one b', 'two a'])
    now = 9_999
    log('one', 'a')
    expect(lines).toEqual([])
    now = 10_000
    log('one', 'a')
    log('one', 'a')
    expect(lines.map(([, , message]) => message)).toEqual(['one a (3 more before this one)'])
  })

  it('L1 gets no secret that an error of the app has, whole, cut off or percent-encoded; neither do DEBUG and warnings', async () => {
    const emitted = quietWarnings()
    const debugged = captureDebug()
    const { logger, lines } = collecting()
    const secrets = ['q8Zr3mW5xK1vT7yB9nL2cD4f', 'Zk4.pX9-wB2~mN7_cV5qR8sJ']
    // Those of a set of characters in a pattern follow the first eight.
    const app = { ...CLIENT, clientSecret: 'cl/ent ü+s3]^\\-9 cr3t' }
    const { marketplace, deliver } = await createScene({
      ...{ logger, app, deliverySecrets: secrets, handlers: { retryDelaysMs: [] } },
      // Not the secret of this delivery: an error that repeats what it was given is not said at all.
      verifyDelivery: () => {
        throw new Error(`no valid signature for /hooks/${secrets[1]}`)
      },
    })
    expect((await deliver(sampleDelivery('application/installed'))).status).toBe(503)
    expect(lines.map(([, , message]) => message)).toContain(
      'A delivery was refused with 503, because verifyDelivery or the store failed: Error: no valid signature for /hooks/[secret]',
    )
    const everyByte = (text: string) => Buffer.from(text).toString('hex').replace(/../g, '%$&')
    // As in the address of the token call, with + for a space.
    const inQuery = new URLSearchParams({ '': app.clientSecret }).toString().slice(1)
    const forms = [...secrets, app.clientSecret].flatMap((secret) => [
      ...[secret, encodeURIComponent(secret), encodeURIComponent(encodeURIComponent(secret))],
      ...[everyByte(secret), everyByte(secret).toUpperCase(), secret.slice(0, 12)],
    ])
    forms.push(inQuery, encodeURIComponent(inQuery))
    const refused = await serve(
      marketplace.listener({
        path: '/hooks',
        otherwise() {
          const form = forms.shift()
          throw new (Object.defineProperty(class extends Error {}, 'name', { value: `E${forms.length}` }))(
            `at <${form}> or ${'x'.repeat(960)}${form}`,
          )
        },
      }),
    )
    const count = forms.length
    for (let i = 0; i < count; i++) expect((await fetch(refused)).status).toBe(500)
    const texts = [
      ...lines.map((line) => JSON.stringify(line)),
      ...emitted.mock.calls.map(([message]) => String(message)),
      ...debugged,
    ]
    expect(texts.filter((text) => text.includes('at <[secret]> or xx')).length).toBe(2 * count)
    expect(debugged.join()).toContain('/hooks/[secret]')
    const leak = /q8Zr3mW5|Zk4\.pX9-|cl\/ent ü|cl%(25)?2Fent(%(25)?20|\+|%2B)|(%[0-9a-f]{2}){8}/i
    expect(texts.filter((text) => leak.test(text))).toEqual([])
  })

  it('may throw and reject', async () => {
    quietWarnings()
    const logger: Logger = {
      warn() {
        throw new Error('no logger')
      },
      error: () => Promise.reject(new Error('no logger')),
    }
    const { marketplace, deliver } = await createScene({ logger, handlers: { retryDelaysMs: [] } })
    const dead: string[] = []
    marketplace.onHandlerError(({ id, retryInMs }) => void (retryInMs === null && dead.push(id)))
    marketplace.on('application/installed', () => {
      throw new Error('never')
    })
    const { id } = await deliver(sampleDelivery('application/installed'))
    await marketplace.settled()
    expect(dead).toEqual([id])
  })

  it.each([[null], ['console'], [{ warn() {} }], [{ warn: 1, error: 1 }]])('may not be %p', (logger) => {
    const create = () =>
      createMarketplace({
        app: CLIENT,
        platform: { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' },
        deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
        logger: logger as never,
      })
    expect(create).toThrow(ConfigError)
    expect(create).toThrow('logger: expected a logger')
  })
})

function collecting() {
  const lines: [level: string, fields: Record<string, unknown>, message: string][] = []
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push([level, fields as Record<string, unknown>, message])
  const logger: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  return { logger, lines }
}
