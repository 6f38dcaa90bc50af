import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { PUBLISHED_SECRETS } from '../../lib/option-checks.js'

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
})

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
