import { OUR_ITEM } from '../settings.js'

/** The addresses of a platform that only `platform.fetch` reaches. */
export const ADDRESSES = { baseUrl: 'https://platform.test', authUrl: 'https://auth.test' }

/** A purchase of our item, as a read shows it. */
export function purchaseOf(uid: string, business_uid: string) {
  return { uid, business_uid, purchasable_uid: OUR_ITEM, purchase_state: 'purchased' }
}

type Answer = readonly object[] | Response

/** `platform.fetch` of a platform that gives each business a token, and whose reads `read` answers. */
export function answering(
  read: (uid: string, business: string, signal: AbortSignal | null | undefined) => Answer | Promise<Answer>,
): { fetch: typeof fetch } {
  return {
    async fetch(input, init) {
      const { pathname, searchParams } = new URL(String(input))
      if (pathname === '/oauth/token')
        return Response.json({ access_token: encodeURIComponent(String(searchParams.get('business_uid'))) })
      const token = String(new Headers(init?.headers).get('authorization')).replace('Bearer ', '')
      const business = decodeURIComponent(token)
      const answer = await read(String(searchParams.get('filter[uid]')), business, init?.signal)
      return answer instanceof Response ? answer : Response.json({ data: { subscriptions: answer } })
    },
  }
}
