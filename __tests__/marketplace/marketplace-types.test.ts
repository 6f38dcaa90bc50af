import { describe, expect, it } from '@jest/globals'
import {
  createMarketplace,
  type Handler,
  type HandlerFor,
  type Marketplace,
  type PurchaseChange,
} from '../../lib/index.js'
import { onCleanUp } from '../support/clean-up.js'
import { customEvents, holds, type Same } from '../support/scenes/own-events.js'
import { CLIENT, DELIVERY_SECRET } from '../support/settings.js'

// The handlers are typed as in separate files.
const onInstalled: HandlerFor<'application/installed'> = ({ data }) => data.business_id.toUpperCase()
const onPaid: HandlerFor<'invoice/paid', typeof customEvents> = ({ data }, { marketplace }) =>
  marketplace.isEntitled(data.business_uid.padEnd(data.total))
const onChange: Handler<PurchaseChange> = async ({ business_uid, record }, { attempt, signal }) => {
  holds<Same<typeof business_uid, string>>()
  holds<Same<typeof attempt, number>>()
  return [record?.updated_at?.slice(0, 10), signal.aborted]
}
/** A part of an app that does not know the types of its events. */
const useMarketplace = (any: Marketplace) => any.explain

describe('the types of a marketplace', () => {
  const marketplace = createMarketplace({
    app: CLIENT,
    platform: { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1' },
    deliverySecrets: DELIVERY_SECRET,
    store: 'sqlite::memory:',
    events: customEvents,
    worker: false,
  })

  it('accept one with its own events where any marketplace is expected', () => {
    onCleanUp(() => marketplace.close())
    expect(useMarketplace(marketplace)).toBe(marketplace.explain)
    // @ts-expect-error the other way round it would lack events
    const more: (plain: Marketplace) => Marketplace<typeof customEvents> = (plain) => plain
    expect(more).toBeDefined()
  })

  it('name its events with their tokens', () => {
    holds<Same<(typeof marketplace.webhooks.events)['application/installed']['tokens'], readonly ['app']>>()
    expect(marketplace.webhooks.events['invoice/paid'].tokens).toEqual(['business'])
  })

  it('accept handlers from other files', () => {
    expect(marketplace.on('application/installed', onInstalled)).toBeInstanceOf(Function)
    expect(marketplace.on('invoice/paid', onPaid)).toBeInstanceOf(Function)
    expect(marketplace.onPurchaseChange(onChange)).toBeInstanceOf(Function)
    const onEither: HandlerFor<'application/installed' | 'application/uninstalled'> = ({ name }) => name
    expect(marketplace.on('application/uninstalled', onEither as never)).toBeInstanceOf(Function)
  })

  it('refuse handlers of another event', () => {
    const refused = () => {
      // @ts-expect-error a handler of another event
      marketplace.on('application/installed', onPaid)
      // @ts-expect-error a handler of one event, registered for any
      marketplace.onAny(onPaid)
      // @ts-expect-error a change is not an event
      marketplace.on('invoice/paid', onChange)
    }
    expect(refused).toBeInstanceOf(Function)
    // @ts-expect-error no such event
    const handler: HandlerFor<'application/deleted'> = () => {}
    const free: Handler<{ total: number }> = ({ total }) => total
    expect([handler, free]).toHaveLength(2)
  })
})
