import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../../lib/store/port/store.js'
import { STORE_METHODS } from '../engines/store-faults.js'
import { EVERY_TOPIC, handling } from './lanes/lane-calls.js'
import type { StoreConformanceOptions } from './options.js'

export { has, idsOf, isNumber, same } from './assertions.js'
export * from './lanes/lane-calls.js'
export * from './lease-times.js'
export { claimOne } from './reads/claim-one.js'
export * from './reads/read-calls.js'

export interface Check {
  name: string
  /** The check is left out if the caller does not offer this. */
  needs?: 'reopen' | 'beside'
  check(lab: Lab): Promise<void>
}

/** The stores and the time of one check. */
export interface Lab {
  /** Open and empty at the start. Every topic has a handler. */
  store: Store
  /** Creates a store over another empty database, not opened, without handlers. */
  create(): Promise<Store>
  /** Closes `store`, and returns a new open one over its data. */
  reopen(): Promise<Store>
  /** Returns another open store over the data of `store`. */
  beside(): Promise<Store>
  /** Lets the store's time advance. */
  pass(ms: number): Promise<void>
  /** Calls `ask` repeatedly until it returns neither undefined nor false. */
  until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T>
  close(): Promise<void>
}

const DEADLINE_MS = 10_000

export async function createLab(options: StoreConformanceOptions): Promise<Lab> {
  const { createStore, reopen, beside, advance } = options
  const stores: Store[] = []

  async function registered(store: Store | Promise<Store> | undefined): Promise<Store> {
    assert(store, 'the option returned no store')
    const made = await store
    for (const method of ['open', 'subscribe', ...STORE_METHODS] as const)
      assert.equal(typeof made[method], 'function', `the store has no method ${method}`)
    stores.push(made)
    return made
  }

  async function opened(store: Store): Promise<Store> {
    await store.open()
    return store
  }

  const lab: Lab = {
    store: await registered(createStore()),
    create: () => registered(createStore()),
    async reopen() {
      await lab.store.close()
      lab.store = await opened(await registered(reopen?.(lab.store)))
      return lab.store
    },
    beside: async () => opened(await registered(beside?.(lab.store))),
    async pass(ms) {
      await (advance ? advance(ms) : sleep(ms))
    },
    async until(what, ask) {
      const deadline = Date.now() + DEADLINE_MS
      for (;;) {
        const answer = await ask()
        if (answer !== undefined && answer !== false) return answer
        if (Date.now() > deadline) assert.fail(`not within ${DEADLINE_MS} ms: ${what}`)
        await lab.pass(10)
      }
    },
    async close() {
      for (const store of stores.reverse()) await store.close()
    },
  }
  try {
    await lab.store.open()
    await handling(lab.store, EVERY_TOPIC)
  } catch (error) {
    await lab.close()
    throw error
  }
  return lab
}
