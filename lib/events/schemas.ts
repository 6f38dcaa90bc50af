import { z } from 'zod'
import { identifier, optionalIdentifier, type SubscriptionRecord, subscriptionRecord } from '../record.js'

/**
 * What `data` may look like, one schema for each shape of the interface document. Optional and unknown fields never
 * make an event unrecognised: a schema asks only for what the event cannot be understood without.
 */

/** A string or a number as it came, and null for everything else, `""` included: dates come in many forms. */
export const optionalText = z
  .unknown()
  .optional()
  .transform((value) =>
    (typeof value === 'string' && value !== '') || typeof value === 'number' ? value : null,
  )

/**
 * The three identifiers. A notice without `purchasable_uid` still leads to a read, which tells whose it is; losing a
 * purchase for its absence would be worse.
 */
export const notice = z.looseObject({
  business_id: identifier,
  purchasable_uid: optionalIdentifier,
  subscription_uid: identifier,
})

/** A full record where a notice is documented: the notice's fields are taken from it and put beside its own. */
export const recordAsNotice = subscriptionRecord.transform(
  (record): SubscriptionRecord & z.output<typeof notice> => ({
    ...record,
    business_id: record.business_uid,
    subscription_uid: record.uid,
  }),
)

/** A full record first: data that has both shapes is a record. */
export const noticeOrRecord = z.union([recordAsNotice, notice])

/** Install and uninstall as businesses and directories register them; `app_id` is the app's unique name. */
export const appSubscription = z.looseObject({ business_id: identifier, app_id: identifier })

/** Install and uninstall as the app registers them; `event_time` as it came, documented as ISO 8601 with offset. */
export const application = z.looseObject({
  business_id: identifier,
  app_code_name: identifier,
  event_time: optionalText,
})
