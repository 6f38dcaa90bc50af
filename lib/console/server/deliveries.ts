import { setImmediate as nextTurn } from 'node:timers/promises'
import type { JournalEntry } from '../../index.js'
import type { Person } from '../shared/roles.js'
import type { DeliveryShape, LiveReply, Replies, WebhooksReply } from '../shared/shapes.js'
import { shapeOf } from './masking.js'
import { type ConsoleMarketplace, rowsFor } from './rows.js'

/** Limit of examined unrecognised deliveries (the newest ones), and how many are read at a time. */
const MAX_EXAMINED = 2_000
const PAGE = 100
const MAX_SHAPES = 100
/** Limit of pages in one reply of `live`. */
const MAX_LIVE_PAGES = 5

/** The calls about deliveries: live, by event, and unrecognised ones by shape. */
export function createDeliveryCalls(marketplace: ConsoleMarketplace) {
  /** Deliveries that the interface document does not describe, by shape. */
  async function shapes(): Promise<Replies['shapes']> {
    const found = new Map<string, DeliveryShape>()
    let examined = 0
    let isAll = true
    for await (const entry of entriesOf(marketplace, { kind: 'unrecognised' }, PAGE)) {
      if (examined === MAX_EXAMINED) {
        isAll = false
        break
      }
      examined++
      const { id, payload, issues, receivedAt } = entry
      const shape = shapeOf(payload)
      const event = eventOf(payload)
      const key = JSON.stringify([event, issues, shape])
      const known = found.get(key)
      if (known) known.count++
      else if (found.size < MAX_SHAPES)
        found.set(key, { event, issues: issues ?? [], shape, count: 1, newest: receivedAt, entryId: id })
    }
    return { shapes: [...found.values()].sort((a, b) => b.count - a.count), examined, isAll }
  }

  async function webhooks(): Promise<WebhooksReply> {
    const [report, others] = await Promise.all([
      marketplace.webhooks.check(),
      marketplace.subscriptions.list({ reason: 'other_app', limit: 20 }),
    ])
    return {
      report,
      otherItems: others.map(({ subscription_uid, business_uid, purchasable_uid }) => ({
        subscription_uid,
        business_uid,
        purchasable_uid,
      })),
    }
  }

  async function live(person: Person, after: string | undefined): Promise<LiveReply> {
    const { entryRow } = rowsFor(person)
    const entries: LiveReply['entries'] = []
    let before: string | undefined
    for (let pages = 0; pages < MAX_LIVE_PAGES; pages++) {
      const page = await marketplace.journal.list({
        limit: PAGE,
        ...(before === undefined ? {} : { before }),
      })
      entries.push(...page.map(entryRow))
      before = page.at(-1)?.id
      const isThere = after === undefined || page.some(({ id }) => id === after)
      if (isThere || page.length < PAGE) return { entries, last: entries[0]?.id ?? null, hasGap: false }
      await nextTurn()
    }
    return { entries, last: entries[0]?.id ?? null, hasGap: true }
  }

  return { shapes, webhooks, live }
}

/** The pair of names that identifies an event. A part that does not look like a name may be any value, and is hidden. */
function eventOf(payload: unknown): string {
  const { entity_name, event_type } = (payload ?? {}) as { entity_name?: unknown; event_type?: unknown }
  return [entity_name, event_type]
    .map((part) => (isName(part) ? part : part === undefined ? 'none' : 'other'))
    .join('/')
}

function isName(part: unknown): part is string {
  return typeof part === 'string' && /^[a-z][a-z_.-]{0,63}$/i.test(part)
}

/** All entries that match the filter, newest first, read page by page. Other work has its turn between two pages. */
export async function* entriesOf(
  marketplace: ConsoleMarketplace,
  filter: Omit<JournalFilter, 'limit' | 'before'>,
  pageSize: number,
): AsyncGenerator<JournalEntry> {
  let before: string | undefined
  for (;;) {
    const page = await marketplace.journal.list({ ...filter, limit: pageSize, ...(before ? { before } : {}) })
    yield* page
    if (page.length < pageSize) return
    before = page.at(-1)?.id
    await nextTurn()
  }
}

type JournalFilter = NonNullable<Parameters<ConsoleMarketplace['journal']['list']>[0]>
