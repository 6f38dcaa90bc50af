import { describe, expect, it } from '@jest/globals'
import { type ConfigError, createMarketplace } from '../../lib/index.js'
import { PUBLISHED_SECRETS } from '../../lib/option-checks.js'
import { readOptions } from '../../lib/options.js'

describe('L86 a secret that stands in the pages, examples and programs', () => {
  it('is refused, with what to do, unless both addresses of the platform are on this machine', () => {
    const away = 'https://platform.example'
    for (const secret of PUBLISHED_SECRETS) {
      for (const here of ['http://127.0.0.1:4010', 'http://localhost:4010/api', 'https://[::1]']) {
        expect(faultsOf(secret, here, here)).toEqual([])
        for (const [baseUrl = '', authUrl = ''] of [
          [away, away],
          [away, here],
          [here, away],
        ]) {
          const faults = faultsOf(secret, baseUrl, authUrl)
          expect(faults).toEqual([
            expect.stringMatching(/^app\.clientSecret: it stands in the documentation.*: use the secret/),
            expect.stringMatching(
              /^deliverySecrets\.1: .*: make one with `npx marketplace-webhooks secret`$/,
            ),
          ])
          expect(faults.join()).not.toContain(secret)
        }
      }
    }
  })
})

describe('L86 createMarketplace', () => {
  const typed: [how: string, clientSecret: string, deliverySecret: string][] = [
    ['as it stands there', 'my-client-secret', 'q8Zr3mW5xK1vT7yB9nL2cD4f'],
    ['with spaces around it', ' my-client-secret\n', ' q8Zr3mW5xK1vT7yB9nL2cD4f '],
    ['in other case', 'My-Client-Secret', 'Q8ZR3mW5xK1vT7yB9nL2cD4F'],
    ['as a placeholder', '<the client secret>', '<one, or several with commas>'],
    ['as a placeholder with spaces', ' <anything> ', ' <a delivery secret of your own> '],
  ]
  it.each(typed)('refuses a secret of the pages %s', async (_how, clientSecret, deliverySecret) => {
    const create = (address: string) =>
      createMarketplace({
        app: { clientId: 'app', clientSecret, purchasableUid: 'item' },
        platform: { baseUrl: address, authUrl: address },
        deliverySecrets: [STRONG, deliverySecret],
        store: 'sqlite::memory:',
        worker: false,
      })
    const faultsAt = async (address: string): Promise<readonly string[]> => {
      try {
        await create(address).close()
        return []
      } catch (error) {
        return (error as ConfigError).faults.filter((fault) => fault.includes('the documentation of this'))
      }
    }
    expect(await faultsAt('https://platform.example')).toEqual([
      expect.stringMatching(/^app\.clientSecret: .*: use the secret/),
      expect.stringMatching(/^deliverySecrets\.1: .*: make one with/),
    ])
    expect(await faultsAt('http://localhost:4010')).toEqual([])
  })

  it.each(['<Hn5tRw8qLd3xVz6k', 'Hn5tRw8qLd3xVz6k>'])('takes %s, which is no placeholder', (secret) => {
    const faults = faultsOf(secret, 'https://platform.example', 'https://platform.example')
    expect(faults.filter((fault) => fault.includes('documentation'))).toEqual([])
  })

  it('takes a secret of your own that contains one', () => {
    expect(
      faultsOf('my-client-secret-Hn5tRw8qLd3xVz6k', 'https://platform.example', 'https://platform.example'),
    ).toEqual([])
  })
})

const STRONG = 'Hn5tRw8qLd3xVz6kYb1mPc4s'

/** The faults of a secret in both places. A client secret is often too weak for a delivery secret, which is another fault. */
function faultsOf(secret: string, baseUrl: string, authUrl: string): readonly string[] {
  try {
    readOptions({
      app: { clientId: 'app', clientSecret: secret },
      platform: { baseUrl, authUrl },
      deliverySecrets: [STRONG, secret],
    })
    return []
  } catch (error) {
    const { faults } = error as { faults: readonly string[] }
    const known = faults.filter((fault) => fault.includes('documentation'))
    const others = faults.filter((fault) => !known.includes(fault) && !fault.includes('must'))
    return [...known, ...others]
  }
}
