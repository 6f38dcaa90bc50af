import type { HttpReply } from './http.js'

/**
 * Error replies seen so far: `{"success":false,"errors":[{"code","message"}]}`, `{"error":"…"}`,
 * `{"message","status":"Error"}`, or an HTML page, with 4xx, 5xx and at times with 200.
 */

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Whether the body of a reply is an error, also with a good status. An `error` of null, `""` or false is not one.
 */
export function isError({ json, isPage }: HttpReply): boolean {
  if (!isObject(json)) return isPage
  return json.success === false || Boolean(json.error) || json.status === 'Error'
}

/** Every code and message of an error reply as one text. It can quote the request, and be as long as a reply. */
export function errorText({ json }: HttpReply): string {
  if (!isObject(json)) return ''
  const errors = Array.isArray(json.errors) ? json.errors.slice(0, 5) : []
  return [json, json.error, ...errors]
    .flatMap((part) =>
      isObject(part) ? [part.code, part.error, part.error_description, part.message] : [part],
    )
    .filter((part, at, all): part is string => typeof part === 'string' && all.indexOf(part) === at)
    .join(' ')
}
