import type { EntryRow } from '../../protocol/shapes.js'

export function nameOf({
  kind,
  name,
  cause,
}: Pick<EntryRow, 'kind' | 'name'> & { cause?: string | null }): string {
  return kind === 'event' || kind === 'action'
    ? name
    : kind === 'unrecognised'
      ? 'unrecognised delivery'
      : `change of ${kind === 'change' ? 'a subscription' : 'the access'}${cause ? ` (cause: ${cause})` : ''}`
}

/** `retrying`: pending, and tried before. */
export function statusOf({ status, attempts }: Pick<EntryRow, 'status' | 'attempts'>): string {
  return status === 'pending' && attempts > 0 ? 'retrying' : status
}

export function toneOfStatus(status: string): 'yes' | 'no' | 'wait' | 'plain' {
  if (status === 'dead') return 'no'
  return status === 'retrying' || status === 'pending' ? 'wait' : 'plain'
}
