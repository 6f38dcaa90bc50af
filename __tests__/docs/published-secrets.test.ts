import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { type ConfigError, createMarketplace } from '../../lib/index.js'
import { PUBLISHED_SECRETS } from '../../lib/option-checks.js'
import { readOptions } from '../../lib/options.js'

const ROOT = join(__dirname, '..', '..')
/** What a reader copies from: the pages, the programs beside them, and what the package itself prints. */
const PUBLISHED = [
  ...['README.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...['.github', 'docs', 'examples', 'example-app', 'lib'],
]
const BUNDLE = join('lib', 'console', 'page-bundle.ts')
/** Texts beside the name of a secret, and texts that look generated, which are no secrets. */
const NO_SECRETS = new Set([
  // The identifier of an entry in examples of the command line.
  '019a1b2c-3d4e-7f50-8123-456789abcdef',
])

describe('the search for secrets', () => {
  const planted: [how: string, text: string][] = [
    ['as a value of an object', `const app = { clientSecret: 'abc-other-secret' }`],
    ['as a constant', `const SECRET = "abc-other-secret"`],
    ['as a default', `const { clientSecret = 'abc-other-secret' } = app`],
    ['as the second of several', `deliverySecrets: ['abc-first-secret', 'abc-other-secret']`],
    [
      'as a variable of a shell',
      'MARKETPLACE_CLIENT_SECRET=abc-other-secret npx marketplace-webhooks doctor',
    ],
    ['as the second in a variable', 'DELIVERY_SECRETS=abc-first-secret,abc-other-secret'],
    ['as a variable of Docker', 'docker run -e DELIVERY_SECRETS=abc-other-secret my-app'],
    ['in YAML', '  DELIVERY_SECRETS: abc-other-secret'],
    ['in YAML of Kubernetes', "- { name: DELIVERY_SECRETS, value: 'abc-other-secret' }"],
    ['in JSON', '{ "deliverySecrets": "abc-other-secret" }'],
    ['as a key of tokens', `consoleRouter(marketplace, { tokenKey: 'abc-other-secret' })`],
    ['at the end of an address', 'curl -X POST https://a.example/webhooks/marketplace/abc-other-secret'],
  ]
  it.each(planted)('finds one %s', (_how, text) => {
    expect(secretsIn(text)).toContain('abc-other-secret')
  })

  it.each(['Yv8Kp3nW5sQ7hT2x', '3f9a1c0e7b2d4865a1b9c3d7', 'k3-Yv8Kp3nW_5sQ7hT2x'])(
    'finds the generated text %s anywhere',
    (secret) => {
      expect(secretsIn(`Send it to ${secret}, please`)).toEqual([secret])
    },
  )

  it('finds none in a placeholder, a name of code or a variable', () => {
    const texts = [
      'DELIVERY_SECRETS=<one, or several with commas>',
      'deliverySecrets: DELIVERY_SECRETS.split(",")',
      'clientSecret: credentials.clientSecret,',
      `env: { DELIVERY_SECRETS: '\${DELIVERY_SECRETS}' }`,
      '/webhooks/marketplace/<secret>',
    ]
    expect(texts.flatMap(secretsIn)).toEqual([])
  })
})

describe('L86 a secret that stands in the pages, examples and programs', () => {
  it('is in the list of the code, which has no others', () => {
    const found = new Set(PUBLISHED.flatMap(filesIn).flatMap((file) => secretsIn(readFileSync(file, 'utf8'))))
    for (const each of NO_SECRETS) found.delete(each)
    expect([...found].sort()).toEqual([...PUBLISHED_SECRETS].sort())
  })

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
            expect.stringMatching(/^deliverySecrets\.1: .*: make one with `openssl rand -hex 24`$/),
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

function filesIn(place: string): string[] {
  if (place.endsWith('.md')) return [join(ROOT, place)]
  return readdirSync(join(ROOT, place), { recursive: true, encoding: 'utf8' })
    .map((file) => join(place, file))
    .filter(
      (file) =>
        /(\.(md|[cm]?[jt]sx?|json|ya?ml|html|sh|env|conf|toml|sql)|Dockerfile)$/.test(file) &&
        file !== BUNDLE,
    )
    .filter((file) => !file.includes('node_modules'))
    .map((file) => join(ROOT, file))
}

/** The name of a secret in code, variables, YAML or JSON. */
const NAMES = String.raw`(?:\w*(?:secret|password)s?|token_?key|api_?key)`
const VALUE = String.raw`[\w.~-]{8,}`
/** `name: 'a'`, `name = "a"`, `name: ['a', 'b']`, and the value of a variable of Kubernetes. */
const QUOTED = new RegExp(
  String.raw`\b${NAMES}["']?\s*(?:[:=]|,\s*value:)\s*((?:\[\s*)?(?:["']${VALUE}["'](?:,\s*)?)+)`,
  'gi',
)
/** `NAME=a,b` of a shell or an env file, and a line `NAME: a` of YAML. Such names are in capitals. */
const PLAIN = new RegExp(
  String.raw`\b[A-Z_]*(?:SECRETS?|PASSWORD|TOKEN_KEY)(?:=(${VALUE}(?:,${VALUE})*)(?![\w(.])|:\s+(${VALUE})\s*$)`,
  'gm',
)
const AT_END_OF_ADDRESS = /\/(?:webhooks\/marketplace|hooks)\/([\w.~-]{8,})/g
const WORDS = /[\w~-]{16,}/g

function secretsIn(text: string): string[] {
  const beside = [QUOTED, PLAIN, AT_END_OF_ADDRESS].flatMap((pattern) =>
    [...text.matchAll(pattern)].flatMap(
      ([, ...values]) => values.join(' ').match(new RegExp(VALUE, 'g')) ?? [],
    ),
  )
  const generated = (text.match(WORDS) ?? []).filter(looksGenerated)
  return [...new Set([...beside.filter((each) => !/^[A-Z_]+$/.test(each)), ...generated])]
}

/** Small and capital letters and digits mixed as no name mixes them, or hexadecimal digits. */
function looksGenerated(word: string): boolean {
  if (/^[0-9a-f-]{20,}$/.test(word)) return /[0-9]/.test(word) && /[a-f]/.test(word)
  const changes = word.match(/[a-zA-Z](?=[0-9])|[0-9](?=[a-zA-Z])/g) ?? []
  return /[a-z]/.test(word) && /[A-Z]/.test(word) && changes.length >= 6
}
