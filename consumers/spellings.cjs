/**
 * Other texts for the path of a paid route. Some servers decode, normalize or ignore the case of a path, and serve the
 * route for them; a gate that compares the text of the path does not notice. A visitor without access must see nothing
 * behind any of them.
 */
function spellingsOf(path) {
  const [, first, rest] = /^\/(.)(.*)$/.exec(path)
  const encoded = (text) => [...text].map((char) => `%${char.charCodeAt(0).toString(16)}`).join('')
  const word = path.slice(1)
  const mount = '/webhooks/marketplace'
  return [
    ...[`/${encoded(first)}${rest}`, `/${encoded(word)}`, `/${encoded(word).toUpperCase()}`],
    ...[`/%25${encoded(first).slice(1)}${rest}`, `/${word.slice(0, -1)}%C5%BF`, `/%EF%BC%B2${rest}`],
    ...[path.toUpperCase(), `/${first.toUpperCase()}${rest}`, `/${first}${rest.toUpperCase()}`],
    ...[`/${path}`, `//${path}`, `/.${path}`, `/x/..${path}`, `/x/%2e%2e${path}`, `/x/..%2f${word}`],
    ...[`/%2e${path}`, `/%2e%2e${path}`, `/%2f${word}`, `%2f${word}`, `/x/%252e%252e${path}`],
    ...[
      `${path}/`,
      `${path}//`,
      `${path}/.`,
      `${path}/x/..`,
      `${path}/%2e`,
      `${path}%2f`,
      `${path}/index.html`,
    ],
    ...[`${path};a=b`, `/;${path}`, `/x;/..${path}`, `${path}%3b`, `${path}%00`, `/%00${path}`, `${path}%20`],
    ...[
      `${path}.`,
      `${path}.json`,
      `${path}.rsc`,
      `${path}?`,
      `${path}?/`,
      `${path}%3f`,
      `${path}#x`,
      `${path}%23`,
    ],
    ...[`/\\${word}`, `\\${word}`, `/%5c${word}`, `/x\\..\\${word}`, `${path}\\`, `${path}%09`, `${path}%0a`],
    ...[`http://127.0.0.1${path}`, `http://127.0.0.1/${encoded(first)}${rest}`, `http://127.0.0.1/${path}`],
    ...[`/_next/..${path}`, `/_next/data/x${path}.json`, `/en${path}`, `/sign-in/..${path}`],
    ...[`${mount}/../..${path}`, `${mount}/..%2f..%2f${word}`, `${mount}/%2e%2e/%2e%2e${path}`],
    ...[`${mount}/${path}`, `${mount};/../..${path}`, `/webhooks%2fmarketplace/..${path}`, `${mount}${path}`],
    ...[
      `${mount.toUpperCase()}/../..${path}`,
      `/%77ebhooks/marketplace/../..${path}`,
      `/${mount}/../..${path}`,
    ],
  ]
}

/** Headers that some servers, proxies and frameworks read as the path, the method or the business. */
const FORGED = [
  {},
  {
    'x-business': 'bakery',
    'x-business-uid': 'bakery',
    business_uid: 'bakery',
    authorization: 'Bearer bakery',
  },
  { 'x-original-url': '/reports', 'x-rewrite-url': '/reports', 'x-forwarded-uri': '/reports' },
  { 'x-http-method-override': 'HEAD', 'x-forwarded-prefix': '/reports' },
  { 'x-middleware-subrequest': 'middleware:middleware:middleware:middleware:middleware', rsc: '1' },
]

exports.spellingsOf = spellingsOf
exports.FORGED = FORGED
