import { describe, expect, it } from '@jest/globals'
import { HOUR } from '../../../lib/base/clock.js'
import { ENGINE_NAMES, useEngine } from '../../support/engines/engines.js'
import { storeOption } from '../../support/engines/store-option.js'
import { openStoreWithSql } from '../../support/engines/store-with-sql.js'
import { createScene } from '../../support/scene.js'
import { NUMBERS, subscriptions } from '../../support/scenes/many-subscriptions.js'
import { until } from '../../support/until.js'

describe.each(ENGINE_NAMES)('G14 after months of deliveries on %s', (engineName) => {
  const engine = useEngine(engineName)
  const DAY = 24 * HOUR

  it('the sweeper follows the retention, and leaves pending work', async () => {
    const lab = await openStoreWithSql(await engine.freshAddress())
    const { sql } = lab
    const now = Date.now()
    await sql(journal('done', 'done', now - 8 * DAY, 3_000))
    await sql(journal('young', 'done', now - 6 * DAY, 200))
    await sql(journal('dead', 'dead', now - 31 * DAY, 1_000))
    await sql(journal('fresh dead', 'dead', now - 29 * DAY, 20))
    await sql(journal('owed', 'pending', now - 80 * DAY, 20, 'change'))
    await sql(journal('handled', 'done', now - 91 * DAY, 1_000, 'change'))
    await sql(journal('reported lately', 'done', now - 89 * DAY, 20, 'change'))
    await sql(subscriptions('made up', 'null', 1_000, now - 31 * DAY))
    const { marketplace } = await createScene({ store: storeOption(lab.store) })
    await marketplace.start()
    const count = async (table: string) =>
      Number((await sql<{ rows: number }>(`select count(*) as rows from ${table}`))[0]?.rows)
    await until('the finished rows are deleted', async () => (await count('journal')) === 260)
    await until('the forged subscriptions are deleted', async () => (await count('subscriptions')) === 0)
    const left = await sql<{ word: string; rows: number }>(
      `select name as word, count(*) as rows from journal group by name order by name`,
    )
    expect(left.map(({ word, rows }) => [word, Number(rows)])).toEqual([
      ['fresh dead', 20],
      ['owed', 20],
      ['reported lately', 20],
      ['young', 200],
    ])
  })
})

function journal(word: string, status: string, at: number, count: number, kind = 'event'): string {
  return `insert into journal
    (id, kind, name, topic, key, payload, status, attempts, received_at, settled_at)
    ${NUMBERS(count)} select '${word} ' || n, '${kind}', '${word}', '${kind}', '${word} ' || n, '{}', '${status}', 0, ${at}, ${at}
    from numbers`
}
