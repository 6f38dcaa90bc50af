import { describe, expect, it } from '@jest/globals'
import { MINUTE, systemClock } from '../../../lib/base/clock.js'
import { MarketplaceError } from '../../../lib/base/errors.js'
import { createHealthCheck } from '../../../lib/operations/health/health-check.js'
import type { CleanUp, StoreCounts } from '../../../lib/store/port/store.js'

describe('G381 health beside a transaction that is open', () => {
  it('is degraded once it has been open for five minutes, and names it', async () => {
    expect(await healthBeside({ oldestTransactionMs: 5 * MINUTE - 1 })).toMatchObject({ status: 'ok' })
    expect(await healthBeside({ oldestTransactionMs: 12 * MINUTE })).toMatchObject({
      status: 'degraded',
      problems: [
        {
          code: 'transaction_open',
          message:
            'the database keeps dead rows (now about 7) for a transaction of the application report (process 42), open for 12 min',
        },
      ],
    })
  })

  it('is not failing while counts do not come in time', async () => {
    const late = async () => {
      throw new MarketplaceError('store_unavailable', 'canceling statement due to statement timeout')
    }
    expect(await healthBeside({ oldestTransactionMs: 12 * MINUTE }, late)).toMatchObject({
      status: 'degraded',
      counts: null,
    })
    const { status, problems } = await healthBeside({ oldestTransactionMs: MINUTE }, late)
    expect([status, problems.map(({ code }) => code)]).toEqual(['failing', ['store_not_answering']])
  })

  it('is ok where the database removes dead rows at once', async () => {
    expect(await healthBeside(null)).toMatchObject({ status: 'ok' })
  })
})

function healthBeside(
  cleanUp: Partial<CleanUp> | null,
  counts = async (): Promise<StoreCounts> => ({}) as StoreCounts,
) {
  const OPEN = { deadRows: 7, oldestTransaction: 'a transaction of the application report (process 42)' }
  return createHealthCheck({
    store: {
      counts,
      cleanUp: async () => cleanUp && { oldestTransactionMs: null, ...OPEN, ...cleanUp },
      turnedAway: async () => null,
      problem: async () => null,
      subscriptionsOf: async () => [],
    },
    isClosed: () => false,
    whyNotOpen: () => undefined,
    problemsOfParts: () => [],
    problemsOfDeliveries: () => [],
    clock: systemClock,
  }).health()
}
