import type { JournalEntry, Marketplace } from '../../../lib/index.js'
import type { Verdict } from './invariants.js'

type Ending = 'returned' | 'dead' | 'nobody handles it'

/** The calls of the handlers and their results, compared with the status in the journal. */
export function createLedger(verdict: Verdict) {
  const endings = new Map<string, Ending>()
  const running = new Map<string, { id: string; life: number }>()
  const seen = new Map<string, JournalEntry>()
  const lastChange = new Map<string, { id: string; what: string }>()
  const toldIds = new Set<string>()
  let isDeathUntold = false
  let calls = 0

  function oneIdFor(id: string, subscription: string, what: string) {
    const last = lastChange.get(subscription)
    if (last?.what === what && last.id !== id) {
      verdict.fail(
        'id',
        `${subscription}: ${what} was delivered as ${last.id.slice(0, 8)} and ${id.slice(0, 8)}`,
      )
    }
    if (!toldIds.has(id)) lastChange.set(subscription, { id, what })
    toldIds.add(id)
  }

  return {
    calls: () => calls,
    dead: () => [...endings.values()].filter((ending) => ending === 'dead').length,

    /**
     * Notes that a handler is called, and returns a function for its end. `life` is the number of the process that runs
     * it.
     */
    onCall(entry: { id: string; key: string; life: number; change?: string }) {
      const { id, key, life, change } = entry
      calls++
      if (change) oneIdFor(id, key, change)
      const other = running.get(key)
      if (other?.life === life) verdict.fail('apart', `${key}: a second handler while the first runs`)
      const own = { id, life }
      running.set(key, own)
      return (hasReturned: boolean) => {
        if (hasReturned) endings.set(id, 'returned')
        if (running.get(key) === own) running.delete(key)
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
    onPowerCut: () => seen.clear(),

    /** Compares the calls with the present journal. */
    async check(journal: Marketplace['journal']) {
      const entries = new Map<string, JournalEntry>()
      for (let before: string | undefined; ; ) {
        const page = await journal.list({ limit: 1_000, ...(before ? { before } : {}) })
        for (const entry of page) entries.set(entry.id, entry)
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

  function check({ id, kind, name, status }: JournalEntry) {
    const words = `${kind} ${name} ${id.slice(0, 8)}`
    const word: string = status
    if (word === 'unhandled') endings.set(id, 'nobody handles it')
    if (word === 'done' && endings.get(id) !== 'returned') {
      verdict.fail('ended', `${words} is done, and no handler returned`)
      endings.set(id, 'returned')
    }
    if (word === 'dead' && !endings.has(id)) {
      if (!isDeathUntold) verdict.fail('ended', `${words} is dead, and onDead was not called`)
      endings.set(id, 'dead')
    }
  }
}

export type Ledger = ReturnType<typeof createLedger>
