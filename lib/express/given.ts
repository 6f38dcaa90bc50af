import type { IncomingMessage } from 'node:http'

/** All values that code of the app was given; undefined if they are not known. */
export type Given = readonly unknown[] | undefined

/**
 * What code of the app is given with a request: its body, its address or the part of it that is not the app's own, the values
 * of its headers, and the address of its sender, each as it was sent and as code usually decodes it. Undefined if the body is,
 * or if a middleware has replaced members of the request by others.
 */
export function givenWith(
  { headers, socket }: IncomingMessage,
  address: readonly unknown[],
  body: string | undefined,
): Given {
  if (body === undefined) return undefined
  try {
    // A Unix socket has no `remoteAddress`, and neither has one whose sender has gone.
    const sent = [...address, socket.remoteAddress, ...Object.values(headers).flat()]
    const texts = sent.filter((each) => each !== undefined).map(String)
    return [body, ...texts, ...texts.flatMap(decoded)]
  } catch {
    return undefined
  }
}

/** The values of a query, a cookie or a header with parameters, and each text that percent signs or base64 hide. */
function decoded(text: string): string[] {
  return text.split(/[?&;\s]+/).flatMap((piece) => {
    // At the end of a text in base64 there are such signs too.
    const [, value] = /^[^=]+=([^=].*)$/.exec(piece) ?? []
    const sent = value ?? piece
    const plain = withoutPercent(sent)
    const read = [plain, withoutPercent(sent.replaceAll('+', ' '))].filter((each) => value || each !== sent)
    // The middle part of a JSON Web Token has the claims.
    const hidden = plain.split('.').flatMap(ofBase64)
    // `Basic` has a name and a password.
    return [...read, ...hidden, ...hidden.flatMap((each) => each.split(':'))]
  })
}

/** Also of a text with faults in its escapes, as a query is read. */
function withoutPercent(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString())
}

function ofBase64(text: string): string[] {
  if (!/^[\w+/-]{4,}=*$/.test(text)) return []
  const read = Buffer.from(text, 'base64').toString()
  return /[\p{Cc}\ufffd]/u.test(read) ? [] : [read]
}
