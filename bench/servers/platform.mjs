import { PURCHASABLE_UID } from './deliveries.mjs'
import { serve, settings } from './serve.mjs'

/**
 * The platform: any business gets a token, which is its own name, and with it every subscription it asks for is the
 * business's and purchased. Answers at once, or after `settings.pauseMs`.
 */
const { pauseMs = 0 } = settings
const reads = new Map()
let readCount = 0

function listener(req, res) {
  const url = new URL(req.url, 'http://platform')
  req.resume()
  const isToken = url.pathname === '/oauth/token'
  if (!isToken) {
    const uid = url.searchParams.get('filter[uid]')
    readCount++
    if (reads.size < 1_000 || reads.has(uid)) reads.set(uid, (reads.get(uid) ?? 0) + 1)
  }
  const reply = JSON.stringify(
    isToken
      ? { access_token: url.searchParams.get('business_uid') }
      : { data: { subscriptions: [record(url.searchParams.get('filter[uid]'), req.headers.authorization)] } },
  )
  const send = () => res.setHeader('Content-Type', 'application/json').end(reply)
  if (pauseMs === 0) send()
  else setTimeout(send, pauseMs)
}

function record(uid, authorization) {
  return {
    uid,
    purchasable_uid: PURCHASABLE_UID,
    buyer_uid: '16fd2706-8baf-433b-82eb-8c7fada847da',
    business_uid: authorization.slice('Bearer '.length),
    purchase_currency: 'USD',
    purchase_price: '9.99',
    purchase_state: 'purchased',
    cancellation_date: null,
    expiration_date: null,
    updated_at: '2026-01-31T10:00:00.000Z',
    created_at: '2026-01-31T10:00:00.000Z',
    payment_type: 'monthly',
  }
}

serve(listener, {
  reads: () => readCount,
  readsOf: (uid) => reads.get(uid) ?? 0,
  forget() {
    reads.clear()
    readCount = 0
  },
})
