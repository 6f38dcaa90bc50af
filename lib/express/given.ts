import type { IncomingMessage } from 'node:http'

/** The texts that code of the app was given; undefined if they are not known. */
export type Given = readonly string[] | undefined

/**
 * The texts that code of the app is given with a request: its body, its address, the values of its headers, and the address
 * of its sender. Undefined if the body is, or if a middleware has replaced members of the request by others.
 */
export function givenWith({ url, headers, socket }: IncomingMessage, body: string | undefined): Given {
  if (body === undefined) return undefined
  try {
    return [body, url, ...Object.values(headers).flat(), socket.remoteAddress].map(String)
  } catch {
    return undefined
  }
}
