import { serve } from './serve.mjs'

/**
 * The platform, as quick as can be: any business gets a token, which is its own name, and with it every subscription
 * it asks for is the business's and purchased.
 */
serve((req, res) => {
  const url = new URL(req.url, 'http://platform')
  const reply =
    url.pathname === '/oauth/token'
      ? { access_token: url.searchParams.get('business_uid') }
      : { data: { subscriptions: [record(url.searchParams.get('filter[uid]'), req.headers.authorization)] } }
  req.resume()
  res.setHeader('Content-Type', 'application/json').end(JSON.stringify(reply))
})

function record(uid, authorization) {
  return {
    uid,
    purchasable_uid: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
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
