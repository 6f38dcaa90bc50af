/** The settings that the processes of a test share. */
export const CLIENT = { clientId: 'test-client', clientSecret: 'test-client-secret' }
export const DELIVERY_SECRET = 'Wq7xKe2mVb9sRt4cYp1n'
/** The addresses of a platform that is reached by `platform.fetch`. */
export const ADDRESSES = { baseUrl: 'https://platform.test', authUrl: 'https://auth.test' }
/** The app's own item on the simulated platform, and an item of another app of the same owner. */
export const OUR_ITEM = 'item-ours'
export const OTHER_ITEM = 'item-other'
/** The business of most tests, and another one. */
export const B1 = 'business-one'
export const B2 = 'business-two'
