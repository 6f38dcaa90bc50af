import { z } from 'zod'
import {
  type AnnouncedRecord,
  announcedRecord,
  identifier,
  identifierOf,
  optionalIdentifier,
} from '../base/record.js'

/**
 * The schemas of `data`, one for each shape of the interface document. Only the identifiers of the subscription and the
 * business are required. Any other field may be null, "", missing or of another type: an event only announces a change,
 * which is then read from the platform, and an odd field must not lose a purchase.
 */

/** A string or a number unchanged, and null for every other value and `""`: dates come in many forms. */
const optionalText = z
  .unknown()
  .optional()
  .transform((value) =>
    (typeof value === 'string' && value !== '') || typeof value === 'number' ? value : null,
  )

/** The three identifiers. A notice without `purchasable_uid` still requests a read, which shows the purchased item. */
export const notice = z.looseObject({
  business_id: identifier,
  purchasable_uid: optionalIdentifier,
  subscription_uid: identifier,
})

/** A full record in place of a documented notice: the record with the fields of a notice added. */
const recordAsNotice = announcedRecord.transform((record): AnnouncedRecord & z.output<typeof notice> => ({
  ...record,
  business_id: record.business_uid,
  subscription_uid: record.uid,
}))

/** A full record first: data with both shapes is a record. */
export const noticeOrRecord = z.union([recordAsNotice, notice])

/** The app's name, which an install does not need: "" if the platform sent none. */
const appName = z
  .unknown()
  .optional()
  .transform((value) => identifierOf(value) ?? '')

/** Install and uninstall as businesses and directories register them; `app_id` is the app's unique name. */
export const appSubscription = z.looseObject({ business_id: identifier, app_id: appName })

/** Install and uninstall as the app registers them. `event_time` stays as sent, documented as ISO 8601 with offset. */
export const application = z.looseObject({
  business_id: identifier,
  app_code_name: appName,
  event_time: optionalText,
})
