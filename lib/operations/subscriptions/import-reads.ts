import { createBatches } from '../../base/batches.js'
import { type Clock, SECOND } from '../../base/clock.js'
import { createRecheck } from '../../base/waiting.js'
import type { Store, Subscription } from '../../store/port/store.js'

/**
 * The result of a line. `read`: the platform showed the subscription for this business, now or earlier. `missing`: the
 * platform does not show it. `refused`: the platform refuses to show it, or shows it for another business. `invalid`: the
 * line does not have two identifiers. `pending`: the import ended before the read was answered.
 */
export type ImportResult = 'read' | 'missing' | 'refused' | 'invalid' | 'pending'

/** A result, and why it is not `read`, as a phrase; null when it is. */
export interface Answer {
  result: ImportResult
  why: string | null
}

/** Hints may be lost, so each row is looked up after this time. */
const LOOK_UP_EVERY_MS = 5 * SECOND
/** Rows that are looked up by one statement. */
const MAX_ROWS = 50

/**
 * The reads of one import: requests them, and finds their results in the rows of the subscriptions. Workers do the
 * reads. Hints of the store name the rows to look up.
 */
export function createImportReads(options: {
  store: Pick<Store, 'requestRefresh' | 'subscriptionsNamed' | 'subscribe'>
  announce: boolean
  answerTimeoutMs: number
  clock: Clock
  /** Why the import ends, as a phrase; undefined while it goes on. */
  whyEnding(): string | undefined
  /** No read was answered for `answerTimeoutMs`. */
  onUnanswered(): void
}) {
  const { store, announce, answerTimeoutMs, clock, whyEnding, onUnanswered } = options
  /** Each waits for the answer of one read. A hint about one of its businesses may be about that read. */
  const waiting = new Set<{ businesses: readonly string[]; lookAgain(): void }>()
  /** The last line of each subscription whose lines are not all answered: they are answered one after the other. */
  const lastOf = new Map<string, Promise<Answer>>()
  /** When a read was last answered, or the first of these reads was requested. */
  let answeredAt = clock.monotonic()

  const unsubscribe = store.subscribe((hint) => {
    if (hint.kind !== 'decided') return
    for (const { businesses, lookAgain } of waiting)
      if (hint.businessUid === null || businesses.includes(hint.businessUid)) lookAgain()
  })

  const rows = createBatches<string, Subscription | undefined>({
    take() {
      let taken = 0
      return () => ++taken <= MAX_ROWS
    },
    async write(uids) {
      const found = await store.subscriptionsNamed([...new Set(uids)])
      return uids.map((uid) => found.find(({ subscriptionUid }) => subscriptionUid === uid))
    },
    split: () => false,
  })

  /** Requests the read, unless it was made before or is requested already, and waits for its answer. */
  async function answer(uid: string, businessUid: string): Promise<Answer> {
    const before = await rows.add(uid)
    const known = before && answerIn(before, businessUid)
    if (known?.result === 'read') return known
    const notRequested = whyEnding()
    if (notRequested) return pending(`${notRequested}, and its read was not requested`)
    if (waiting.size === 0) answeredAt = clock.monotonic()
    const { wait, end: lookAgain } = createRecheck(clock, LOOK_UP_EVERY_MS)
    const waiter = { businesses: [businessUid, ...(before ? [before.businessUid] : [])], lookAgain }
    waiting.add(waiter)
    try {
      if (!before || !isRequested(before, businessUid, announce)) {
        const named = { subscriptionUid: uid, businessUid, purchasableUid: null }
        await store.requestRefresh({ kind: 'subscription', ...named, quiet: !announce }, 'import')
      }
      return await answerOfRead(uid, businessUid, wait)
    } finally {
      waiting.delete(waiter)
      lookAgain()
    }
  }

  async function answerOfRead(
    uid: string,
    businessUid: string,
    wait: (ms: number) => Promise<boolean>,
  ): Promise<Answer> {
    /** When its reads began to fail without an answer of the platform. */
    let failingSince: number | undefined
    for (;;) {
      // The pause begins before the look, so that a hint during the look ends it.
      const pause = wait(patienceMs())
      const row = await rows.add(uid)
      const found = row && answerIn(row, businessUid)
      const now = clock.monotonic()
      if (found) {
        answeredAt = now
        return found
      }
      const why = whyEnding()
      if (why) return pending(why)
      failingSince = row?.failure ? (failingSince ?? now) : undefined
      if (failingSince !== undefined && now - failingSince >= answerTimeoutMs)
        return pending(`its reads fail (${row?.failure}); a worker tries them again`)
      if (patienceMs() === 0) onUnanswered()
      else await pause
    }
  }

  /** How long the import still waits for the next answer. */
  function patienceMs(): number {
    return Math.max(0, answeredAt + answerTimeoutMs - clock.monotonic())
  }

  return {
    /** Resolves with the result of a line, after those of earlier lines with the same subscription. */
    async answer(uid: string, businessUid: string): Promise<Answer> {
      const before = lastOf.get(uid)
      const own = before ? before.then(() => answer(uid, businessUid)) : answer(uid, businessUid)
      lastOf.set(uid, own)
      try {
        return await own
      } finally {
        if (lastOf.get(uid) === own) lastOf.delete(uid)
      }
    },

    /** Every waiting line is looked up again. */
    lookAgain() {
      for (const { lookAgain } of waiting) lookAgain()
    },

    end: unsubscribe,
  }
}

function pending(why: string): Answer {
  return { result: 'pending', why }
}

/** Whether its first read is already requested: for this business, and announced if this import announces. */
function isRequested(row: Subscription, businessUid: string, announce: boolean): boolean {
  const isOpen = row.record === null && row.pending && row.failure === null
  return isOpen && row.businessUid === businessUid && !(announce && row.quiet)
}

/** The result of a line from the row of its subscription; undefined while the platform has not answered. */
function answerIn(
  { record, gone, businessUid, pending, failure }: Subscription,
  givenBusinessUid: string,
): Answer | undefined {
  const isRead = record !== null && gone === null
  if (isRead && businessUid === givenBusinessUid) return { result: 'read', why: null }
  if (failure === null ? pending : !(failure in ANSWERS)) return undefined
  if (failure !== null) return ANSWERS[failure as keyof typeof ANSWERS]
  if (gone === 'missing') return ANSWERS.platform_record_missing
  if (gone !== null) return ANSWERS.token_refused
  return isRead ? OF_ANOTHER_BUSINESS : undefined
}

/** Failures that are an answer of the platform. After any other failure a worker tries the read again. */
const ANSWERS = {
  platform_record_missing: {
    result: 'missing',
    why: 'platform_record_missing: the platform does not show this subscription for this business',
  },
  platform_refused: {
    result: 'refused',
    why: 'platform_refused: the platform refuses to show this subscription to the app',
  },
  platform_record_mismatch: {
    result: 'refused',
    why: 'platform_record_mismatch: the platform shows another subscription, or this one for another business',
  },
  token_refused: {
    result: 'refused',
    why: 'token_refused: the platform refuses the app a token for this business; check that it has installed the app',
  },
} as const

const OF_ANOTHER_BUSINESS = {
  result: 'refused',
  why: 'the platform shows this subscription for another business',
} as const
