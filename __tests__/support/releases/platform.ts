/** The app and the platform of the databases in this folder. The address is the same in each, because a store belongs to one app. */
export const RELEASE_APP = {
  clientId: 'app',
  clientSecret: 'secret-of-the-app',
  purchasableUid: 'item',
  codeName: 'app',
}
export const RELEASE_ADDRESSES = { baseUrl: 'https://platform.example', authUrl: 'https://auth.example' }
export const RELEASE_SECRET = 'Hn5tRw8qLd3xVz6kYb1mPc4s'

/** A platform that shows these states by subscription uid; each subscription `x-1` is of the business `x`. */
export function platformOf(states: Readonly<Record<string, string>>): typeof fetch {
  return async (input) => {
    const url = new URL(String(input))
    if (url.pathname === '/oauth/token')
      return Response.json({ access_token: `t-${url.searchParams.get('business_uid')}` })
    const uid = String(url.searchParams.get('filter[uid]'))
    const state = states[uid]
    const record = {
      uid,
      business_uid: uid.replace(/-1$/, ''),
      purchasable_uid: RELEASE_APP.purchasableUid,
      purchase_state: state,
      purchase_price: '9.99',
      updated_at: '2026-11-01T10:00:00.000Z',
      created_at: '2026-11-01T10:00:00.000Z',
      payment_type: 'monthly',
      cancellation_date: null,
      expiration_date: null,
    }
    return Response.json({ data: { subscriptions: state === undefined ? [] : [record] } })
  }
}
