import type { StoreWithSql } from '../engines/store-with-sql.js'

/** Subscriptions `s-0000001`, … that were read and are not purchased, each with a business of its own. */
export async function addSubscriptions({ sql }: Pick<StoreWithSql, 'sql'>, count: number, item: string) {
  const now = Date.now()
  await sql(`insert into subscriptions (subscription_uid, business_uid, purchasable_uid, record, unread, state, read_at,
      generation, settled_generation, refresh_at, urgency, verifying, lapses, served_since, created_at)
    ${numbers(count)}
    select ${uid('s')}, ${uid('b')}, '${item}', '{"uid":"' || ${uid('s')} || '","business_uid":"' || ${uid('b')}
      || '","purchasable_uid":"${item}","purchase_state":"suspended","buyer_uid":"buyer","purchase_price":"12.00"}',
      0, 'suspended', ${now}, 1, 1, ${now + 86_400_000}, 2, 0, 0, ${now}, ${now} from numbers`)
}

/** Dead entries of `purchasable_subscription/update`, one a millisecond, with a payload of 1 kB and one of ten errors. */
export async function addDeadEntries({ sql }: Pick<StoreWithSql, 'sql'>, count: number) {
  const now = Date.now()
  await sql(`insert into journal (id, kind, name, topic, key, business_uid, subscription_uid, status, attempts, error,
      received_at, settled_at, payload)
    ${numbers(count)}
    select ${uid('e')}, 'event', 'purchasable_subscription/update', 'event:purchasable_subscription/update', ${uid('k')},
      ${uid('b')}, ${uid('s')}, 'dead', 5, 'Error: no ledger ' || substr('abcdefghij', 1 + n % 10, 1), ${now} - ${count} + n, ${now},
      '{"entity_name":"purchasable_subscription","event_type":"update","data":{"note":"${'x'.repeat(900)}"}}' from numbers`)
}

function numbers(count: number): string {
  return `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})`
}

/** An identifier with the number of the row in seven digits. */
function uid(letter: string): string {
  return `'${letter}-' || substr(cast(10000000 + n as text), 2)`
}
