import { useEffect, useState } from 'preact/hooks'
import type { MaxOutcomes, OutcomeRow } from '../../protocol/shapes.js'
import { read } from '../calls.js'
import { placeOf, usePolling } from '../hooks.js'
import { Trouble } from '../parts.js'
import { nameOf } from './names.js'

const EVERY_MS = 1_000
const MAX_ASKED: MaxOutcomes = 100
/** Then the page no longer asks: the handlers are slow, or the entries wait behind others. */
const MAX_POLLS = 120

/** What became of replayed entries: handled, failed again with what, or still waiting. It asks until each has an outcome. */
export function Outcome({ ids, onSettled }: { ids: readonly string[]; onSettled: () => void }) {
  /** Entries with an outcome; null for one that no longer exists. */
  const [settled, setSettled] = useState<ReadonlyMap<string, OutcomeRow | null>>(new Map())
  const [error, setError] = useState<string>()
  const [polls, setPolls] = useState(0)
  const waiting = ids.filter((id) => !settled.has(id))
  const isWaiting = waiting.length > 0 && polls < MAX_POLLS

  async function poll() {
    // Those that wait behind others must not keep the page from asking for the rest.
    const begin = (polls * MAX_ASKED) % waiting.length
    const asked = waiting.slice(begin, begin + MAX_ASKED)
    try {
      const { entries } = await read('outcomes', { ids: asked.join(',') })
      const found = new Map(entries.map((entry) => [entry.id, entry]))
      setError(undefined)
      setSettled((before) => {
        const after = new Map(before)
        for (const id of asked) {
          const entry = found.get(id)
          if (!entry || outcomeOf(entry) !== 'waiting') after.set(id, entry ?? null)
        }
        return after
      })
    } catch (problem) {
      setError((problem as Error).message)
    } finally {
      setPolls(polls + 1)
    }
  }
  usePolling(poll, EVERY_MS, isWaiting)
  useEffect(() => {
    if (!isWaiting) onSettled()
  }, [isWaiting])

  const rows = [...settled.values()].filter((entry) => entry !== null)
  const of = (outcome: ReturnType<typeof outcomeOf>) => rows.filter((entry) => outcomeOf(entry) === outcome)
  const [dead, retrying] = [of('dead'), of('retrying')]
  const failures = failuresOf([...dead, ...retrying])
  const others = failures.slice(MAX_FAILURES).reduce((sum, { count }) => sum + count, 0)
  const sentences = [
    counted(of('handled').length, 'handled'),
    counted(of('unhandled').length, 'without a handler of the app'),
    counted(settled.size - rows.length, 'no longer there'),
    counted(dead.length, 'failed again'),
    counted(retrying.length, 'failed again, and will be tried again by itself'),
    counted(
      waiting.length,
      isWaiting ? 'waiting for handlers' : 'still waiting for handlers: look again later',
    ),
  ]
  return (
    <div class="outcome">
      <p class="note" role="status">
        {sentences.filter((sentence) => sentence !== '').join(' ')}
      </p>
      <ul class="issues">
        {failures.slice(0, MAX_FAILURES).map(({ key, name, error: words, count, newest }) => (
          <li key={key}>
            {ids.length > 1 && `${name}: `}
            {words}{' '}
            {ids.length > 1 && (
              <>
                ({count}) <a href={placeOf('attention', newest.id)}>Open one</a>
              </>
            )}
          </li>
        ))}
        {others > 0 && <li>{others} with other errors: see the groups below.</li>}
      </ul>
      <Trouble error={error} />
    </div>
  )
}

function outcomeOf({
  status,
  attempts,
}: OutcomeRow): 'handled' | 'unhandled' | 'dead' | 'retrying' | 'waiting' {
  if (status === 'done') return 'handled'
  if (status !== 'pending') return status
  // A replay begins with the first try.
  return attempts > 0 ? 'retrying' : 'waiting'
}

function counted(count: number, what: string): string {
  return count === 0 ? '' : `${count} ${what}.`
}

interface Failure {
  key: string
  name: string
  error: string
  count: number
  newest: OutcomeRow
}

/** The causes, the most frequent first. One that a single entry has is its error as it is. */
function failuresOf(failed: readonly OutcomeRow[]): Failure[] {
  const failures = new Map<string, Failure>()
  for (const entry of failed) {
    const name = nameOf({ kind: entry.kind, name: entry.name })
    const key = `${name}: ${entry.sharedError}`
    const known = failures.get(key)
    if (known) Object.assign(known, { count: known.count + 1, error: entry.sharedError ?? known.error })
    else
      failures.set(key, { key, name, error: entry.error ?? 'no error was recorded', count: 1, newest: entry })
  }
  return [...failures.values()].sort((a, b) => b.count - a.count)
}

const MAX_FAILURES = 5
