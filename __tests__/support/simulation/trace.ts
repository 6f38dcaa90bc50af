import type { LaneClaim, Store } from '../../../lib/store/port/store.js'
import type { VirtualClock } from '../machine/virtual-clock.js'

/** The events of a world in order. Two worlds of one seed have the same. */
export function createTrace(time: VirtualClock) {
  const lines: string[] = []
  // Identifiers are partly random. Their order of appearance is the same in every run of the seed.
  const ordinals = new Map<string, number>()
  const ordinal = (id: string) => {
    if (!ordinals.has(id)) ordinals.set(id, ordinals.size)
    return `#${ordinals.get(id)}`
  }

  /** What a call of the store did, in a few words; empty if nothing that is worth a line. */
  function wordsFor(method: keyof Store, args: readonly unknown[], result: unknown): string {
    if (method === 'finishRead') {
      const [{ id }, { found, failure, nextInMs }] = args as Parameters<Store['finishRead']>
      return `${id} ${found?.state} ${found?.record?.updated_at} ${failure} ${nextInMs} ${result}`
    }
    if (method === 'claimSuspectRead') return String((result as { id: string } | undefined)?.id)
    if (method === 'claimReads') return (result as { id: string }[]).map(({ id }) => id).join()
    if (method === 'claimLanes' || method === 'claimSuspectLane') {
      return ([result ?? []].flat() as LaneClaim[])
        .map(({ id: key, entries }) => entries.map(({ id }) => ordinal(id)).join('+') + key)
        .join()
    }
    if (method === 'accept') {
      return (args[0] as { id: string; name: string; key: string }[])
        .map(({ id, name, key }) => `${ordinal(id)}${name}${key === id ? '' : key}`)
        .join()
    }
    if (method === 'finishLanes') {
      const [finishes] = args as Parameters<Store['finishLanes']>
      const words = finishes.flatMap(({ results }) =>
        results.map(({ id, result: { kind } }) => `${ordinal(id)}${kind}`),
      )
      return words.join() + (result as string[]).length
    }
    return ''
  }

  return {
    lines,
    trace: (line: () => string) => void lines.push(`${time.passed()} ${line()}`),
    wordsFor,
  }
}
