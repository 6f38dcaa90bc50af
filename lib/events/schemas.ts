import { z } from 'zod'
import {
  type AnnouncedRecord,
  announcedRecord,
  identifier,
  identifierOf,
  optionalIdentifier,
} from '../record.js'

/**
 * What `data` may look like, one schema for each shape of the interface document. Only the identifiers of the subscription
 * and of the business are essential. Nothing else, whether null, "", missing or of an odd type, makes an event
 * unrecognised: an event only announces what is then read, and losing a purchase for an odd field would be worse.
 */

/** A string or a number as it came, and null for everything else, `""` included: dates come in many forms. */
export const optionalText = z
  .unknown()
  .optional()
  .transform((value) =>
    (typeof value === 'string' && value !== '') || typeof value === 'number' ? value : null,
  )

/** The three identifiers. A notice without `purchasable_uid` still leads to a read, which shows what was purchased. */
export const notice = z.looseObject({
  business_id: identifier,
  purchasable_uid: optionalIdentifier,
  subscription_uid: identifier,
})

/** A full record where a notice is documented: the notice's fields are taken from it and put beside its own. */
export const recordAsNotice = announcedRecord.transform(
  (record): AnnouncedRecord & z.output<typeof notice> => ({
    ...record,
    business_id: record.business_uid,
    subscription_uid: record.uid,
  }),
)

/** A full record first: data that has both shapes is a record. */
export const noticeOrRecord = z.union([recordAsNotice, notice])

/** The app's name, which an install is understood without: "" where the platform sent none. */
const appName = z
  .unknown()
  .optional()
  .transform((value) => identifierOf(value) ?? '')

/** Install and uninstall as businesses and directories register them; `app_id` is the app's unique name. */
export const appSubscription = z.looseObject({ business_id: identifier, app_id: appName })

/** Install and uninstall as the app registers them; `event_time` as it came, documented as ISO 8601 with offset. */
export const application = z.looseObject({
  business_id: identifier,
  app_code_name: appName,
  event_time: optionalText,
})
