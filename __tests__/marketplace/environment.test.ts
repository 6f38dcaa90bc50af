import { describe, expect, it } from '@jest/globals'
import { ConfigError, createMarketplace, optionsFromEnvironment } from '../../lib/index.js'
import { DELIVERY_SECRET } from '../support/settings.js'

const ENVIRONMENT = {
  MARKETPLACE_CLIENT_ID: 'client',
  MARKETPLACE_CLIENT_SECRET: 'canary-of-the-environment',
  MARKETPLACE_PURCHASABLE_UID: ' plan-basic, plan-pro ',
  MARKETPLACE_CODE_NAME: 'my-app',
  MARKETPLACE_BASE_URL: 'https://platform.example',
  MARKETPLACE_AUTH_URL: 'https://auth.platform.example',
  DELIVERY_SECRETS: `${DELIVERY_SECRET},Zt4bYs8wLr2nXk6mQj9d`,
  MARKETPLACE_STORE: 'sqlite::memory:',
}

describe('optionsFromEnvironment', () => {
  it('gives options that createMarketplace takes, with lists at commas', async () => {
    const options = optionsFromEnvironment(ENVIRONMENT)
    expect(options).toEqual({
      app: {
        clientId: 'client',
        clientSecret: 'canary-of-the-environment',
        purchasableUid: ['plan-basic', 'plan-pro'],
        codeName: ['my-app'],
      },
      platform: { baseUrl: 'https://platform.example', authUrl: 'https://auth.platform.example' },
      deliverySecrets: [DELIVERY_SECRET, 'Zt4bYs8wLr2nXk6mQj9d'],
      store: 'sqlite::memory:',
    })
    await createMarketplace({ ...options, worker: false }).close()
  })

  it('reads the variables of the process by default', () => {
    expect(() => optionsFromEnvironment()).toThrow('MARKETPLACE_CLIENT_ID is not set')
  })

  it('takes an empty variable for one that is not set', () => {
    const options = optionsFromEnvironment({
      ...ENVIRONMENT,
      MARKETPLACE_CODE_NAME: ' ',
      MARKETPLACE_STORE: undefined,
    })
    expect(options.app).not.toHaveProperty('codeName')
    expect(options).not.toHaveProperty('store')
  })

  it('throws one ConfigError that names each variable that is missing or not valid, and no value', () => {
    const faults = faultsOf({
      ...ENVIRONMENT,
      MARKETPLACE_CLIENT_ID: '',
      MARKETPLACE_BASE_URL: 'canary-address',
      DELIVERY_SECRETS: 'canary-1,canary-2',
      MARKETPLACE_STORE: 'canary:store',
    })
    const named = [...new Set(faults.map((fault) => fault.split(' ')[0]))]
    const wrong = ['MARKETPLACE_CLIENT_ID', 'MARKETPLACE_BASE_URL', 'DELIVERY_SECRETS', 'MARKETPLACE_STORE']
    expect(named).toEqual(wrong)
    // A fault that both secrets have is one sentence.
    expect(faults).toHaveLength(new Set(faults).size)
    expect(faults).toEqual(
      expect.arrayContaining([
        'MARKETPLACE_CLIENT_ID is not set (app.clientId)',
        expect.stringMatching(/^MARKETPLACE_BASE_URL \(platform\.baseUrl\): expected an absolute/),
        expect.stringMatching(/^DELIVERY_SECRETS \(deliverySecrets\): .*at least 16 characters/),
        'MARKETPLACE_STORE (store): expected sqlite:<path> or postgres://…',
      ]),
    )
    expect(faults.join()).not.toContain('canary')
    expect(faultsOf({})).toHaveLength(5)
  })
})

function faultsOf(env: Record<string, string | undefined>): readonly string[] {
  try {
    optionsFromEnvironment(env)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}
