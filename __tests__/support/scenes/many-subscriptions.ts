const MANY = 10_000

export const NUMBERS = (count: number) =>
  `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})`

export function subscriptions(
  word: string,
  refreshAt: string,
  count = MANY,
  requestedAt: number | string = 1,
  failure = 'null',
  unread = 1,
  urgency = unread === 0 ? 4 : 1,
): string {
  return `insert into subscriptions
    (subscription_uid, business_uid, generation, settled_generation, requested_at, refresh_at, urgency, unread, verifying, lapses, created_at, failure)
    ${NUMBERS(count)} select '${word} ' || n, 'business ' || n, 1, 0, ${requestedAt}, ${refreshAt}, ${urgency}, ${unread}, 0, 0, 1, ${failure} from numbers`
}
