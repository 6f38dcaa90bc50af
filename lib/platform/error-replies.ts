import type { HttpReply } from './http.js'

/**
 * Error replies as they have been seen: `{"success":false,"errors":[{"code","message"}]}`, `{"error":"…"}`,
 * `{"message","status":"Error"}`, or an HTML page, with 4xx, 5xx and at times with 200.
 */

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Whether a reply with a good status says in its body that it is an error. An `error` that is null, `""` or false says
 * that there is none.
 */
export function saysError({ json, isPage }: HttpReply): boolean {
  if (!isObject(json)) return isPage
  return json.success === false || Boolean(json.error) || json.status === 'Error'
}

/** Every code and message an error reply holds, in one text. It can quote what was sent, and be as long as a reply. */
export function errorWords({ json }: HttpReply): string {
  if (!isObject(json)) return ''
  const errors = Array.isArray(json.errors) ? json.errors.slice(0, 5) : []
  return [json, json.error, ...errors]
    .flatMap((part) =>
      isObject(part) ? [part.code, part.error, part.error_description, part.message] : [part],
    )
    .filter((word, at, all): word is string => typeof word === 'string' && all.indexOf(word) === at)
    .join(' ')
}
