import type { JournalEntry, Marketplace } from '../../../lib/index.js'
import type { SkipReason, Verdict } from '../world/promises.js'

type Ending = 'returned' | 'dead' | 'nobody handles it'

/** The calls of the handlers and their results, compared with the status in the journal. */
export function createLedger(verdict: Verdict) {
  const endings = new Map<string, Ending>()
  const running = new Map<string, { id: string; isAlive(): boolean }>()
  const seen = new Map<string, JournalEntry>()
  const lastChange = new Map<string, { id: string; what: string }>()
  const toldIds = new Set<string>()
  const called = new Set<string>()
  /** Changes that no handler got, because they became dead or nobody handled them. */
  const lost = new Set<string>()
  /** Businesses with such a change, until a handler gets another one. */
  const withoutChange = new Set<string>()
  /** Businesses whose last change was handled while the answer was unknown. */
  const withoutAnswer = new Set<string>()
  let isDeathUntold = false
  let calls = 0

  function oneIdFor(id: string, subscription: string, what: string) {
    const last = lastChange.get(subscription)
    if (last?.what === what) {
      verdict.made('id')
      if (last.id !== id)
        verdict.fail(
          'id',
          `${subscription}: ${what} was delivered as ${last.id.slice(0, 8)} and ${id.slice(0, 8)}`,
        )
    }
    if (!toldIds.has(id)) lastChange.set(subscription, { id, what })
    toldIds.add(id)
  }

  /** Entries that had not ended may vanish. */
  function forget(why: SkipReason) {
    for (const id of seen.keys()) if (!endings.has(id)) verdict.skipped('ended', why)
    seen.clear()
  }

  return {
    calls: () => calls,
    dead: () => [...endings.values()].filter((ending) => ending === 'dead').length,

    /** Notes that a handler is called, by a process that `isAlive`. Returns a function for the end of the call. */
    onCall(entry: { id: string; key: string; business: string; change?: string }, isAlive: () => boolean) {
      const { id, key, business, change } = entry
      const lane = change === undefined ? key : `the changes of ${business}`
      calls++
      called.add(id)
      if (change) oneIdFor(id, key, change)
      verdict.made('apart')
      const other = running.get(lane)
      if (other?.isAlive()) verdict.fail('apart', `${lane}: a second handler while the first runs`)
      const own = { id, isAlive }
      running.set(lane, own)
      return (hasReturned: boolean) => {
        if (hasReturned) endings.set(id, 'returned')
        if (running.get(lane) === own) running.delete(lane)
      }
    },

    onDead(id: string, subscription: string | null) {
      endings.set(id, 'dead')
      // A change without a call of a handler came between them.
      if (subscription) lastChange.delete(subscription)
    },

    /** A process was killed: results that were committed but not reported are lost. */
    onKill() {
      isDeathUntold = true
      running.clear()
    },
    /** The power failed: entries that the journal had shown but not synced may be lost. */
    onPowerCut: () => forget('a power cut may have lost it'),

    /** The file is replaced by an older copy: later entries are gone, and later changes happen again. */
    onRestore() {
      forget('the restored backup may be older')
      lastChange.clear()
    },
    /** A change of the business is handled, while its answer is known or not. */
    onAnswer(business: string, isKnown: boolean) {
      withoutChange.delete(business)
      if (isKnown) withoutAnswer.delete(business)
      else withoutAnswer.add(business)
    },
    isWithoutAnswer: (business: string) => withoutAnswer.has(business),
    /** Whether the handlers of the app did not get a change of the business. */
    isWithoutChange: (business: string) => withoutChange.has(business),

    /** Compares the calls with the present journal. */
    async check(journal: Marketplace['journal']) {
      const entries = new Map<string, JournalEntry>()
      for (let before: string | undefined; ; ) {
        const page = await journal.list({ limit: 1_000, ...(before ? { before } : {}) })
        // One call may be for several entitlements and has the id of one. The second oracle judges these calls.
        for (const entry of page) if (entry.kind !== 'entitlement') entries.set(entry.id, entry)
        if (page.length < 1_000) break
        before = page.at(-1)?.id
      }
      for (const entry of entries.values()) check(entry)
      for (const [id, { kind, name, status, subscription_uid }] of seen) {
        if (entries.has(id) || endings.has(id)) continue
        verdict.fail('ended', `${kind} ${name} ${id.slice(0, 8)} was ${status} and has vanished`)
        endings.set(id, 'dead')
        if (subscription_uid) lastChange.delete(subscription_uid)
      }
      for (const [id, entry] of entries) seen.set(id, entry)
      isDeathUntold = false
    },
  }

  function check({ id, kind, name, status, business_uid, attempts, error }: JournalEntry) {
    verdict.made('ended')
    const isLost = status === 'dead' || status === 'unhandled'
    if (kind === 'change' && isLost && business_uid && !lost.has(id)) {
      lost.add(id)
      withoutChange.add(business_uid)
    }
    const words = `${kind} ${name} ${id.slice(0, 8)}`
    if (status === 'unhandled') endings.set(id, 'nobody handles it')
    if (status === 'done' && endings.get(id) !== 'returned') {
      verdict.fail('ended', `${words} is done, and no handler returned`)
      endings.set(id, 'returned')
    }
    // With tries, it did not only wait for a handler.
    if (status === 'dead' && attempts > 0 && !called.has(id)) {
      verdict.fail('ended', `${words} is dead after ${attempts} tries, and no handler was called: ${error}`)
      called.add(id)
    }
    if (status === 'dead' && !endings.has(id)) {
      if (isDeathUntold) verdict.skipped('ended', 'a kill may have prevented the report of its end')
      else verdict.fail('ended', `${words} is dead, and onHandlerError was not called`)
      endings.set(id, 'dead')
    }
  }
}

export type Ledger = ReturnType<typeof createLedger>
