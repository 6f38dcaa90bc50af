import { inRounds, withRatios } from '../harness/statistics.mjs'

/**
 * Measures the question that an app asks on every request, answered from memory. "Sizes" has the answers that are not
 * in memory.
 */
export async function entitlement({ platformUrl, quick, note, start, newStore }) {
  const rounds = quick ? 7 : 15
  const child = await start('entitlement', { store: await newStore('sqlite', 'entitlement'), platformUrl })
  const items = [
    { id: 'is-entitled', name: '`await marketplace.isEntitled(business_uid)`' },
    { id: 'bare-get', name: '`await cache.get(business_uid)` of lru-cache' },
  ]
  try {
    note(`${rounds} rounds`)
    // The first call warms up.
    for (const { id } of items) await child.ask('measure', id)
    const measure = async ({ id }) => ({ ns: await child.ask('measure', id) })
    const rows = await inRounds({ items, rounds, note: () => {}, measure })
    return {
      title: 'isEntitled, warm',
      about: `1,000 businesses, 200,000 calls in a round, ${rounds} rounds in turns in one process.`,
      columns: [
        { id: 'ns', name: 'ns per call', digits: 0 },
        { id: 'ratio', name: '× awaited lru-cache get', digits: 2 },
      ],
      rows: withRatios(rows, 'ns', () => 'bare-get'),
    }
  } finally {
    await child.stop()
  }
}
