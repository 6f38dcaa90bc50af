import { setImmediate as nextTurn } from 'node:timers/promises'
import { shapeOf } from './masking.js'
import type { ConsoleMarketplace } from './needs.js'
import type { Person } from './roles.js'
import { rowsFor } from './rows.js'
import type { DeliveryShape, LiveReply, Replies, WebhooksReply } from './shapes.js'

/** Unrecognised deliveries that are looked at, the newest, by so many at a time. */
const MOST_LOOKED_AT = 2_000
const PAGE = 100
const MOST_SHAPES = 100
/** Live: so many pages at most for one reply. */
const MOST_LIVE_PAGES = 5

/** What comes in: live, by event, and what is not understood. */
export function createDeliveryCalls(marketplace: ConsoleMarketplace) {
  /** The report of what the platform sends that its interface document does not say. */
  async function shapes(): Promise<Replies['shapes']> {
    const found = new Map<string, DeliveryShape>()
    let before: string | undefined
    let looked = 0
    let isAll = false
    while (looked < MOST_LOOKED_AT) {
      const page = await marketplace.journal.list({
        kind: 'unrecognised',
        limit: PAGE,
        ...(before === undefined ? {} : { before }),
      })
      looked += page.length
      for (const { id, payload, issues, receivedAt } of page) {
        const shape = shapeOf(payload)
        const event = eventOf(payload)
        const key = JSON.stringify([event, issues, shape])
        const known = found.get(key)
        if (known) known.count++
        else if (found.size < MOST_SHAPES)
          found.set(key, { event, issues: issues ?? [], shape, count: 1, newest: receivedAt, entry_id: id })
      }
      before = page.at(-1)?.id
      if (page.length < PAGE) {
        isAll = true
        break
      }
      await nextTurn()
    }
    return { shapes: [...found.values()].sort((a, b) => b.count - a.count), looked, isAll }
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
    for (let pages = 0; pages < MOST_LIVE_PAGES; pages++) {
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

/** The pair by which events are told apart, where both look like names; else they may be anything. */
function eventOf(payload: unknown): string {
  const { entity_name, event_type } = (payload ?? {}) as { entity_name?: unknown; event_type?: unknown }
  return [entity_name, event_type]
    .map((part) => (isName(part) ? part : part === undefined ? 'none' : 'other'))
    .join('/')
}

function isName(part: unknown): part is string {
  return typeof part === 'string' && /^[a-z][a-z_.-]{0,63}$/i.test(part)
}
