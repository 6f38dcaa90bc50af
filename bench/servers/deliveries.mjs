/** The deliveries. `0000000` stands for a number; see `harness/load.mjs`. */
export const PURCHASABLE_UID = '7c9e6679-7425-40de-944b-e07fc1f90ae7'
export const SECRET = 'q8Zr3mW5xK1vT7yB9nL2cD4f'
export const businessOf = (number) => `b6f0c6a2-1d7f-4a4e-9d3c-business${pad(number)}`
export const subscriptionOf = (number) => `3f2504e0-4f89-41d3-9a0c-subscript${pad(number)}`

/** A notice of the platform: `purchasable_subscription/create` or `/update`. */
export function notice(event = 'update', number = 0) {
  return {
    entity_name: 'purchasable_subscription',
    event_type: event === 'create' ? 'created' : event,
    data: {
      business_id: businessOf(number),
      purchasable_uid: PURCHASABLE_UID,
      subscription_uid: subscriptionOf(number),
    },
  }
}

/** `application/installed` or `/uninstalled`. */
export function install(event, business_id) {
  return {
    entity_name: 'application',
    event_type: event,
    data: { business_id, app_code_name: 'bench', event_time: '2026-01-31T10:00:00.000Z' },
  }
}

export const BODY = JSON.stringify(notice())

function pad(number) {
  return String(number).padStart(7, '0')
}
