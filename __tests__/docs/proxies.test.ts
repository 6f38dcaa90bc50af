import { describe, expect, it } from '@jest/globals'
import { PAGES } from '../support/docs/pages.js'

/** A directive of nginx, with the block behind it. */
interface Directive {
  words: string[]
  block: Directive[] | undefined
}

const ADDRESS = '/webhooks/marketplace/the-secret'
/** The variables that contain the address. */
const WITH_ADDRESS = /\$(request|request_uri|uri|document_uri|request_filename|http_referer)\b|\$\{/
/** The formats that nginx itself defines contain the address. */
const OWN_FORMATS = ['combined']

describe('the check of configurations of nginx', () => {
  const SAFE = `
    map $request $is_logged { default 1; ~*/webhooks/ 0; }
    access_log /a.log combined if=$is_logged;
    log_format deliveries '$remote_addr $status';
    server {
      location / { proxy_pass http://app; }
      location ^~ /webhooks/ {
        access_log /d.log deliveries; error_log /dev/null emerg; error_page 599 /; proxy_pass http://app;
      }
    }`

  it('finds no fault in one that is safe, also without any access log', () => {
    expect(faultsOf(SAFE)).toEqual([])
    expect(
      faultsOf(SAFE.replace('/d.log deliveries', 'off').replace('/a.log combined if=$is_logged', 'off')),
    ).toEqual([])
  })

  it.each([
    ['no error_log', 'error_log /dev/null emerg;', '', 'the error log'],
    ['an error_log into a file', '/dev/null emerg', '/e.log', 'the error log'],
    ['an error_log that is named off', '/dev/null emerg', 'off', 'the error log'],
    ['no access_log in the location', 'access_log /d.log deliveries; ', '', 'the access log of the location'],
    ['the usual format', '/d.log deliveries', '/d.log', 'the access log of the location'],
    [
      'a format with the address',
      '$remote_addr $status',
      '$remote_addr $request',
      'the access log of the location',
    ],
    ['an unconditional access_log', ' if=$is_logged', '', 'an access log elsewhere'],
    ['no access_log elsewhere', 'access_log /a.log combined if=$is_logged;', '', 'an access log elsewhere'],
    ['a condition for another path', '~*/webhooks/ 0', '~*/hooks/ 0', 'an access log elsewhere'],
    ['the pages of the server', 'error_page 599 /; ', '', 'the error pages of the server'],
    ['a location that others precede', '^~ /webhooks/', '/webhooks/', 'a location with a regular expression'],
    ['info as level elsewhere', 'server {', 'error_log /e.log info; server {', 'the level of the error log'],
    ['no location of its own', 'location ^~ /webhooks/', 'location ^~ /other/', 'no location of its own'],
  ])('finds %s', (_what, from, to, fault) => {
    expect(SAFE).toContain(from)
    expect(faultsOf(SAFE.replace(from, to))).toContain(fault)
  })
})

describe('L88 the configurations of nginx on the pages', () => {
  const found = [...PAGES].flatMap(([path, text]) =>
    [...text.matchAll(/```nginx\n(.*?)```/gs)].map(([, code = '']) => ({ path, code })),
  )

  it('write the delivery secret neither into an access log nor into an error log', () => {
    expect(found.length).toBeGreaterThan(0)
    for (const { path, code } of found) expect({ path, faults: faultsOf(code) }).toEqual({ path, faults: [] })
  })

  it('are the only configurations of a proxy, because each has its own logs', () => {
    for (const [path, text] of PAGES) {
      const languages = [...text.matchAll(/^```(\w+)/gm)].map(([, language]) => language)
      const others = languages.filter((each) =>
        /^(apache|caddy|caddyfile|haproxy|traefik|envoy)/i.test(each ?? ''),
      )
      expect({ path, others }).toEqual({ path, others: [] })
      expect(text).not.toMatch(/kind: (Ingress|HTTPRoute)/)
    }
  })
})

/** Where the address of a delivery is written. */
function faultsOf(code: string): string[] {
  const { directives } = parsed(tokensOf(code))
  const all = flat(directives)
  const own = all.filter(
    ({ words }) => words[0] === 'location' && ADDRESS.startsWith(words.at(-1) ?? '') && words.at(-1) !== '/',
  )
  const [location] = own
  if (location === undefined) return ['no location of its own']
  const inside = location.block ?? []
  const formats = new Map(
    all
      .filter(({ words: [name] }) => name === 'log_format')
      .map(({ words }) => [words[1], words.slice(2).join('')]),
  )
  const isHidden = ({ words: [, path, format = 'combined'] }: Directive) =>
    path === 'off' || (!OWN_FORMATS.includes(format) && !WITH_ADDRESS.test(formats.get(format) ?? '$request'))
  const isConditional = ({ words }: Directive) => {
    const [, variable] = /^if=(\$\w+)$/.exec(words.at(-1) ?? '') ?? []
    const map = all.find(
      ({ words: [name, source, target] }) => name === 'map' && source === '$request' && target === variable,
    )
    return (map?.block ?? []).some(
      ({ words: [pattern = '', value] }) =>
        value === '0' &&
        pattern.startsWith('~') &&
        new RegExp(pattern.replace(/^~\*?/, '')).test(`POST ${ADDRESS} HTTP/1.1`),
    )
  }
  const named = (directives: Directive[], name: string) => directives.filter(({ words }) => words[0] === name)
  const logs = named(inside, 'access_log')
  const logsElsewhere = named(all, 'access_log').filter((each) => !logs.includes(each))
  const errorLog = named(inside, 'error_log')[0]?.words.slice(1).join(' ')
  const levels = named(all, 'error_log').map(({ words }) => words[2] ?? 'error')
  const faults: Record<string, boolean> = {
    'the error log': errorLog !== '/dev/null emerg',
    'the access log of the location': logs.length === 0 || !logs.every(isHidden),
    'an access log elsewhere':
      logsElsewhere.length === 0 ||
      !logsElsewhere.every((each) => each.words[1] === 'off' || isConditional(each)),
    'the error pages of the server': named(inside, 'error_page').length === 0,
    'a location with a regular expression': location.words[1] !== '^~',
    'the level of the error log': levels.some((level) => ['info', 'debug'].includes(level)),
  }
  return Object.entries(faults).flatMap(([fault, is]) => (is ? [fault] : []))
}

function tokensOf(code: string): string[] {
  const withoutComments = code.replace(/^\s*#.*$/gm, '')
  return withoutComments.match(/'[^']*'|"[^"]*"|[{};]|[^\s{};]+/g) ?? []
}

function parsed(tokens: readonly string[], from = 0): { directives: Directive[]; at: number } {
  const directives: Directive[] = []
  let words: string[] = []
  let at = from
  while (at < tokens.length && tokens[at] !== '}') {
    const token = tokens[at++] as string
    if (token === ';') directives.push({ words, block: undefined })
    else if (token === '{') {
      const inner = parsed(tokens, at)
      at = inner.at + 1
      directives.push({ words, block: inner.directives })
    } else {
      words.push(token.replace(/^(['"])(.*)\1$/, '$2'))
      continue
    }
    words = []
  }
  return { directives, at }
}

function flat(directives: readonly Directive[]): Directive[] {
  return directives.flatMap((each) => [each, ...flat(each.block ?? [])])
}
