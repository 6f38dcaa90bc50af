import type { HttpReply } from './http.js'

/**
 * Error replies as they have been seen: `{"success":false,"errors":[{"code","message"}]}`, `{"error":"…"}`,
 * `{"message","status":"Error"}`, or an HTML page, with 4xx, 5xx and at times with 200.
 */

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a reply with a good status says in its body that it is an error. */
export function saysError({ json }: HttpReply): boolean {
  if (!isObject(json)) return false
  return (
    json.success === false || (json.error !== undefined && json.error !== null) || json.status === 'Error'
  )
}

/** Every code and message an error reply holds, in one text of at most 500 characters. */
export function errorWords({ json }: HttpReply): string {
  if (!isObject(json)) return ''
  const errors = Array.isArray(json.errors) ? json.errors.slice(0, 5) : []
  return [json, json.error, ...errors]
    .flatMap((part) =>
      isObject(part) ? [part.code, part.error, part.error_description, part.message] : [part],
    )
    .filter((word, at, all): word is string => typeof word === 'string' && all.indexOf(word) === at)
    .join(' ')
    .slice(0, 500)
}
