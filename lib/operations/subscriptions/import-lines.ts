import { MarketplaceError, messageOf } from '../../base/errors.js'
import { identifierOf, requireIdentifier } from '../../base/record.js'
import { nextTurn } from '../../base/waiting.js'

/** One line of an import as given, with its number: the first is 1. */
export interface GivenLine {
  line: number
  /** Null when the line has no valid identifier. */
  subscriptionUid: string | null
  businessUid: string | null
  /** Why the line is not valid; null for a valid one. */
  fault: string | null
}

/**
 * The lines of an iterable in batches. An asynchronous iterable is asked for its next line only during `take`, and a batch
 * ends when no further line is ready, so a slow source does not hold back the lines it has given.
 * Throws `argument_invalid` for a value that is not iterable.
 */
export function createLineSource(lines: unknown) {
  const iterator = iteratorOf(lines)
  let pulled: Promise<IteratorResult<unknown>> | IteratorResult<unknown> | undefined
  let count = 0
  let isDone = false

  /** Turns an error that the iterable throws into a rejection. */
  function next() {
    try {
      return iterator.next()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  return {
    /** The number of lines, if it is known in advance. */
    total: Array.isArray(lines) ? lines.length : lines instanceof Set ? lines.size : undefined,
    isDone: () => isDone,

    /** Resolves with at least one line, or with none at the end; rejects with the error of the iterable. */
    async take(most: number): Promise<GivenLine[]> {
      const taken: GivenLine[] = []
      // The app's event loop has a turn between batches, however many lines are skipped.
      await nextTurn()
      while (taken.length < most && !isDone) {
        pulled ??= next()
        const isLater = taken.length > 0 && pulled instanceof Promise
        let result: IteratorResult<unknown> | undefined
        try {
          result = await (isLater ? Promise.race([pulled, nextTurn().then(() => undefined)]) : pulled)
        } catch (error) {
          // The lines before the error come first: the next call rejects with it.
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

    /** Takes no further line. Lets the iterable clean up, and does not wait for that. */
    end() {
      if (isDone) return
      isDone = true
      // Not awaited: a generator that waits for its own source returns only after that source answers.
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
    'Cannot import subscriptions: expected an iterable or an async iterable of { subscriptionUid, businessUid }',
  )
}

function givenLine(value: unknown, line: number): GivenLine {
  const given = (value ?? {}) as Record<string, unknown>
  try {
    return {
      line,
      subscriptionUid: requireIdentifier(given.subscriptionUid, 'subscriptionUid'),
      businessUid: requireIdentifier(given.businessUid, 'businessUid'),
      fault: null,
    }
  } catch (error) {
    return {
      line,
      subscriptionUid: identifierOf(given.subscriptionUid),
      businessUid: identifierOf(given.businessUid),
      fault: messageOf(error),
    }
  }
}
