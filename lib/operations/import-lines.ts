import { MarketplaceError, messageOf } from '../errors.js'
import { identifierOf, requireIdentifier } from '../record.js'
import { nextTurn } from '../waiting.js'

/** One line of an import as it was given, with its number: the first is 1. */
export interface GivenLine {
  line: number
  /** Null where the line has none that can be an identifier. */
  subscription_uid: string | null
  business_uid: string | null
  /** Why it is not valid; null when it is. */
  fault: string | null
}

/**
 * The lines of an iterable in batches. An asynchronous one is asked for the next line only while a batch is being
 * taken, and a batch ends with what has come: a slow source does not hold back the lines before.
 * Throws `argument_invalid` for what is not iterable.
 */
export function createLineSource(lines: unknown) {
  const iterator = iteratorOf(lines)
  let pulled: Promise<IteratorResult<unknown>> | IteratorResult<unknown> | undefined
  let count = 0
  let isDone = false

  /** What the iterable throws is kept as what it rejects with. */
  function next() {
    try {
      return iterator.next()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  return {
    /** How many lines there are, where that is known before the last. */
    total: Array.isArray(lines) ? lines.length : lines instanceof Set ? lines.size : undefined,
    isDone: () => isDone,

    /** Resolves with at least one line, unless there is none left; rejects with what the iterable rejects with. */
    async take(most: number): Promise<GivenLine[]> {
      const taken: GivenLine[] = []
      // However many lines are skipped, the app's event loop has its turn between batches.
      await nextTurn()
      while (taken.length < most && !isDone) {
        pulled ??= next()
        const isLater = taken.length > 0 && pulled instanceof Promise
        let result: IteratorResult<unknown> | undefined
        try {
          result = await (isLater ? Promise.race([pulled, nextTurn().then(() => undefined)]) : pulled)
        } catch (error) {
          // After the lines before it have had their turn.
          if (taken.length === 0) throw error
          break
        }
        if (!result) break
        pulled = undefined
        if (result.done) isDone = true
        else taken.push(givenLine(result.value, ++count))
      }
      return taken
    },

    /** No further line is taken: lets the iterable clean up, and does not wait for it. */
    end() {
      if (isDone) return
      isDone = true
      // A generator that waits for its own source returns only when that answers.
      const ended = (async () => iterator.return?.())()
      ended.catch(() => {})
    },
  }
}

function iteratorOf(lines: unknown): Iterator<unknown> | AsyncIterator<unknown> {
  const given = lines as Partial<AsyncIterable<unknown> & Iterable<unknown>> | null | undefined
  const isText = typeof lines === 'string'
  const iterator = isText ? undefined : (given?.[Symbol.asyncIterator]?.() ?? given?.[Symbol.iterator]?.())
  if (iterator) return iterator
  throw new MarketplaceError(
    'argument_invalid',
    'Cannot import subscriptions: expected an iterable or an async iterable of { subscription_uid, business_uid }',
  )
}

function givenLine(value: unknown, line: number): GivenLine {
  const given = (value ?? {}) as Record<string, unknown>
  try {
    return {
      line,
      subscription_uid: requireIdentifier(given.subscription_uid, 'subscription_uid'),
      business_uid: requireIdentifier(given.business_uid, 'business_uid'),
      fault: null,
    }
  } catch (error) {
    return {
      line,
      subscription_uid: identifierOf(given.subscription_uid),
      business_uid: identifierOf(given.business_uid),
      fault: `Line ${line}: ${messageOf(error)}`,
    }
  }
}
