/** Scheme and host of a request target in absolute form, as some proxies send it (RFC 9112, 3.2.2). */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i
const SLASH = 47

/** The path of a request target, without origin and query, not decoded; '' when the target has none. */
export function pathOf(url: unknown): string {
  if (typeof url !== 'string') return ''
  const target = url.charCodeAt(0) === SLASH ? url : url.replace(ORIGIN, '')
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

/** The path after the slash at `start`, decoded, without a trailing slash; '' when it cannot be decoded. */
export function segmentAt(path: string, start: number): string {
  const end = path.length - 1
  const candidate = path.slice(start + 1, path.charCodeAt(end) === SLASH ? end : undefined)
  if (!candidate.includes('%')) return candidate
  try {
    return decodeURIComponent(candidate)
  } catch {
    return ''
  }
}
