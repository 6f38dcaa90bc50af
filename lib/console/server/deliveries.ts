import type { Person } from '../protocol/roles.js'
import type { ActivityReply, DeliveryShape, LiveReply, Replies, WebhooksReply } from '../protocol/shapes.js'
import { type IsShown, shapeOf } from './masking.js'
import { type ConsoleMarketplace, rowsFor } from './rows.js'
import type { Scans } from './scans.js'

const MAX_SHAPES = 100
const MAX_OTHER_ITEMS = 20
/** Entries in a reply of `live`; more only to reach the last one that the page has. */
const LIVE = 100
const MAX_LIVE = 500
const HOURS = 24
const HOUR_MS = 3_600_000

/** The calls about deliveries: live, by event, and unrecognised ones by shape. */
export function createDeliveryCalls(marketplace: ConsoleMarketplace, scans: Scans) {
  /** Deliveries that the interface document does not describe, by shape. */
  async function shapes(
    person: Person,
    { before }: { before?: string | undefined },
  ): Promise<Replies['shapes']> {
    const { isNameShown, isEventNameShown, issuesOf } = rowsFor(person)
    const found = new Map<string, DeliveryShape>()
    const { examined, next } = await scans.entries(
      { kind: 'unrecognised' },
      {
        from: before,
        take({ id, payload, issues: all, receivedAt }) {
          const issues = issuesOf({ issues: all ?? [] })
          const shape = shapeOf(payload, isNameShown)
          const event = eventOf(payload, isEventNameShown)
          const key = JSON.stringify([event, issues, shape])
          const known = found.get(key)
          if (known) known.count++
          else if (found.size < MAX_SHAPES)
            found.set(key, { event, issues, shape, count: 1, newest: receivedAt, entryId: id })
        },
      },
    )
    const all = [...found.values()].sort((a, b) => b.count - a.count)
    return { shapes: all, examined, next, isAll: next === null }
  }

  async function webhooks(): Promise<WebhooksReply> {
    const report = await scans.inTurn(() => marketplace.webhooks.check())
    const otherItems: WebhooksReply['otherItems'] = []
    const { examined, next } = await scans.subscriptions({
      take({ reason, subscription_uid, business_uid, purchasable_uid }) {
        if (reason === 'other_app') otherItems.push({ subscription_uid, business_uid, purchasable_uid })
      },
      isFull: () => otherItems.length === MAX_OTHER_ITEMS,
    })
    return { report, otherItems, examined, isAll: next === null }
  }

  async function live(person: Person, { after }: { after?: string | undefined }): Promise<LiveReply> {
    const { entryRow } = rowsFor(person)
    const entries: LiveReply['entries'] = []
    let isThere = after === undefined
    const { next } = await scans.entries(
      {},
      {
        page: LIVE + 1,
        take(entry) {
          isThere ||= entry.id === after
          entries.push(entryRow(entry))
        },
        isFull: () => entries.length >= (isThere ? LIVE : MAX_LIVE),
      },
    )
    return { entries, last: entries[0]?.id ?? null, hasGap: !isThere && next !== null }
  }

  /** The newest entries of the last day, counted by the hour in which they came. */
  async function activity(): Promise<ActivityReply> {
    const first = (Math.floor(Date.now() / HOUR_MS) - HOURS + 1) * HOUR_MS
    const hours = Array.from({ length: HOURS }, (_, i) => ({
      at: new Date(first + i * HOUR_MS).toISOString(),
      ...{ deliveries: 0, handled: 0, failed: 0 },
    }))
    let isPast = false
    // Not the filter `since`: after the entries of the day it would look through all others.
    const { next } = await scans.entries(
      {},
      {
        isFull: () => isPast,
        take({ kind, status, attempts, receivedAt }) {
          const since = Date.parse(receivedAt) - first
          isPast = since < 0
          const hour = hours[Math.floor(since / HOUR_MS)]
          if (!hour || kind === 'action') return
          if (kind === 'event' || kind === 'unrecognised') hour.deliveries++
          if (status === 'done') hour.handled++
          if (status === 'dead' || (status === 'pending' && attempts > 0)) hour.failed++
        },
      },
    )
    return { hours, isAll: isPast || next === null }
  }

  return { shapes, webhooks, live, activity }
}

/** The pair of names that identifies an event, as far as the person sees them. */
function eventOf(payload: unknown, isShown: IsShown): string {
  const { entity_name, event_type } = (payload ?? {}) as { entity_name?: unknown; event_type?: unknown }
  return [entity_name, event_type]
    .map((part) => {
      if (part === undefined) return 'none'
      return typeof part === 'string' && isShown(part) ? part.slice(0, 64) : 'other'
    })
    .join('/')
}
