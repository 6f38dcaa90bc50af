import { z } from 'zod'
import { defineEvent } from '../../../lib/index.js'

/** True if both types are the same. */
export type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Compiles only if the type is true. */
export const holds = <T extends true>(): T => true as T

/** The events of an app's own. */
export const customEvents = {
  'invoice/paid': defineEvent({
    entity_name: 'invoice',
    event_type: 'paid',
    data: z.object({ business_uid: z.string(), total: z.coerce.number() }),
    tokens: ['business'],
    subject: (data) => ({ business_uid: data.business_uid }),
  }),
}
