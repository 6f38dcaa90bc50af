import { describe, expect, it } from '@jest/globals'
import { DAY, HOUR, systemClock } from '../../../lib/base/clock.js'
import { createDispatcher } from '../../../lib/work/handling/dispatcher.js'
import { createHandlers } from '../../../lib/work/handling/handlers.js'
import { EVERY_TOPIC, eventOf, handling } from '../../support/conformance/lab.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { until } from '../../support/until.js'

const EVENTS = 1_000
/** Measured: 90 to 110. A claim and a finish take 3 or 4 statements each, and a batch has 50 entries or more. */
const MAX_PER_THOUSAND = 150

describe.each(ENGINE_NAMES)('a backlog whose handlers return at once, on %s', (name) => {
  const engine = useEngine(name)

  it.each([EVENTS, 50, 1])(
    'costs few statements per thousand events, in %d lanes',
    async (lanes) => {
      const { store, queriesOf } = await openStoreWithSql(await engine.freshAddress())
      await handling(store, EVERY_TOPIC)
      for (let first = 0; first < EVENTS; first += 500)
        await store.accept(
          Array.from({ length: 500 }, (_, i) =>
            eventOf('s1', { id: `e${first + i}`, key: `k${(first + i) % lanes}` }),
          ),
        )
      const seen: string[] = []
      const handlers = createHandlers()
      handlers.onAny(({ id }) => void seen.push(id))
      const dispatcher = createDispatcher({
        store,
        handlers,
        payloadOf: ({ id }) => ({ id }),
        marketplace: () => undefined,
        timeoutMs: HOUR,
        retryDelaysMs: [],
        retentionMs: DAY,
        concurrency: 8,
        leaseMs: HOUR,
        renewEveryMs: HOUR,
        pollMs: HOUR,
        // With this clock, batches end by their size, not by the time that a busy machine takes.
        clock: { ...systemClock, monotonic: () => 0 },
        onDead() {},
        onError(error) {
          throw error
        },
      })
      const queries = await queriesOf(async () => {
        dispatcher.start()
        await until('all events are handled', () => seen.length >= EVENTS, 60_000)
        await dispatcher.close(10_000)
      })
      expect(seen).toHaveLength(EVENTS)
      expect(new Set(seen).size).toBe(EVENTS)
      expect(await store.counts()).toMatchObject({ pending: 0 })
      expect(queries.length).toBeLessThan((MAX_PER_THOUSAND * EVENTS) / 1_000)
    },
    90_000,
  )
})
