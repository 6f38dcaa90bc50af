import { inspect } from 'node:util'
import { describe, expect, it } from '@jest/globals'
import { ConfigError, createMarketplace, type MarketplaceOptions } from '../../lib/index.js'
import { CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../support/settings.js'

const B1 = 'business-one'

describe('options', () => {
  const SECRET = 'canary-5Qz8'

  it('L2 that are wrong are listed all at once, without a secret', () => {
    const wrong = {
      app: { clientId: '', clientSecret: 7, purchasableUid: [''], clientSecrets: SECRET },
      platform: { baseUrl: `https://me:${SECRET}@platform.test`, authUrl: 'nowhere', fetch: 'fetch' },
      deliverySecrets: [SECRET, 'change-me-change-me'],
      store: 7,
      entitledWhen: true,
      freshness: { waitMs: -1, maxStaleMs: '72h' },
      handlers: { concurrency: 0 },
      closeTimeoutMs: Number.NaN,
      unheardOf: SECRET,
    }
    const error = thrownBy(() => createMarketplace(wrong as unknown as MarketplaceOptions))
    expect(error).toBeInstanceOf(ConfigError)
    const { code, message, faults } = error as ConfigError
    expect(code).toBe('config_invalid')
    for (const named of [
      'app.clientId',
      'app.clientSecret',
      'app.purchasableUid',
      'clientSecrets',
      'platform.baseUrl',
      'platform.authUrl',
      'platform.fetch',
      'deliverySecrets.0',
      'deliverySecrets.1',
      'store',
      'entitledWhen',
      'freshness.waitMs',
      'freshness.maxStaleMs',
      'handlers.concurrency',
      'closeTimeoutMs',
      'unheardOf',
    ]) {
      expect(faults.filter((fault) => fault.includes(named))).not.toEqual([])
      expect(message).toContain(named)
    }
    expect(inspect(error, { depth: null })).not.toContain(SECRET)
  })

  it.each([
    [undefined],
    [null],
    ['https://platform.test'],
    [[]],
    [{}],
    [{ app: null, platform: null, deliverySecrets: null }],
  ])('that are %p throw a ConfigError', (given) => {
    const error = thrownBy(() => createMarketplace(given as unknown as MarketplaceOptions))
    expect(error).toBeInstanceOf(ConfigError)
  })

  it.each([
    [{ app: { purchasableUid: [] } }, 'app.purchasableUid: expected at least one'],
    [{ app: { purchasableUid: 7 } }, 'app.purchasableUid: expected a text, or several in an array'],
    [{ worker: 'on' }, 'worker: expected true or false'],
    [{ app: { clientId: undefined } }, 'app.clientId: expected string, and it is missing'],
    [{ retries: 3 }, 'options: unknown option: "retries"'],
    [{ handlers: { concurrency: 0 } }, 'handlers.concurrency: expected 1 or more'],
    [{ reads: { concurrency: 0.5 } }, 'reads.concurrency: expected a whole number'],
    [{ bodyLimitBytes: 1 }, 'bodyLimitBytes: expected 1024 bytes or more'],
    [{ freshness: { waitMs: -1 } }, 'freshness.waitMs: expected 0 ms or more'],
    [
      { deliverySecrets: 'q8Zr3mW5' },
      'deliverySecrets.0: a delivery secret must have at least 16 characters: make one with `openssl rand -hex 24`',
    ],
  ])('such as %j get a sentence about what was expected', (wrong: object, fault) => {
    const { app, platform, ...rest } = wrong as { app?: object; platform?: object }
    const given = {
      app: { ...CLIENT, ...app },
      platform: { baseUrl: 'https://platform.test', authUrl: 'https://auth.test', ...platform },
      deliverySecrets: DELIVERY_SECRET,
      ...rest,
    }
    const error = thrownBy(() => createMarketplace(given as unknown as MarketplaceOptions))
    expect((error as ConfigError).faults).toEqual([fault])
  })

  it('that are undefined keep their defaults', async () => {
    const marketplace = createMarketplace({
      app: { ...CLIENT, purchasableUid: OUR_ITEM, codeName: undefined },
      platform: { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1', fetch: undefined },
      deliverySecrets: 'Jq2vWn8xTz5rLc3mKp7d',
      store: 'sqlite::memory:',
      entitledWhen: undefined,
      freshness: undefined,
      worker: undefined,
      closeTimeoutMs: undefined,
      clock: undefined,
    })
    expect(await marketplace.isEntitled(B1)).toBe(false)
    await marketplace.close()
  })
})

function thrownBy(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
