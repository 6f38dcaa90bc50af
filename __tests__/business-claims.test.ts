import { describe, expect, it } from '@jest/globals'
import type { ClaimReads, ReadClaim } from '../lib/store/store.js'
import { createBusinessClaims } from '../lib/work/business-claims.js'
import { createReader } from './support/reader.js'
import { gate } from './support/until.js'

const ANY = { limit: 10, urgencies: [0, 1] } as const

describe('the claims of reads', () => {
  it('leave out the businesses that are being read, until those reads have ended', async () => {
    const { claims, asked } = businessClaims([['a', 'b'], ['c'], []])
    const [first] = await claims.claim(ANY)
    await claims.claim({ ...ANY, except: ['d'] })
    claims.release(first as ReadClaim)
    await claims.claim(ANY)
    expect(asked.map(({ except }) => except)).toEqual([[], ['a', 'b', 'd'], ['b', 'c']])
    expect(asked[0]).toMatchObject({ ...ANY, leaseMs: 60_000 })
  })

  it('run one after the other, so that each leaves out the businesses of the previous claim', async () => {
    const hold = gate()
    const { claims, asked } = businessClaims([['a'], ['b']], () => hold.opened)
    const both = [claims.claim(ANY), claims.claim(ANY)]
    await new Promise((resolve) => setImmediate(resolve))
    expect(asked).toHaveLength(1)
    hold.open()
    await Promise.all(both)
    expect(asked.map(({ except }) => except)).toEqual([[], ['a']])
  })

  it('continue after a failed claim, whose caller gets the error', async () => {
    let isDown = true
    const { claims } = businessClaims([['a']], async () => {
      if (isDown) throw new Error('no database')
    })
    await expect(claims.claim(ANY)).rejects.toThrow('no database')
    isDown = false
    expect(await claims.claim(ANY)).toHaveLength(1)
  })

  it('lease nothing if a pause began while they waited', async () => {
    let isPaused = false
    const { claims, asked } = businessClaims(
      [['a'], ['b']],
      async () => {
        isPaused = true
      },
      () => isPaused,
    )
    const both = [claims.claim(ANY), claims.claim(ANY)]
    expect((await Promise.all(both)).map(({ length }) => length)).toEqual([1, 0])
    expect(asked).toHaveLength(1)
  })
})

/** Claims of a store that leases one read of each of these businesses. Each inner list is one claim. */
function businessClaims(leases: string[][], before = async () => {}, isPaused = () => false) {
  const asked: ClaimReads[] = []
  const claims = createBusinessClaims({
    store: {
      async claimReads(claim) {
        asked.push(claim)
        await before()
        return (leases.shift() ?? []).map((businessUid) => {
          const { claim } = createReader()
          return { ...claim, subscription: { ...claim.subscription, businessUid } }
        })
      },
    },
    leaseMs: 60_000,
    isPaused,
  })
  return { claims, asked }
}
