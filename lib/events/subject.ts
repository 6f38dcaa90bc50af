import { type AnnouncedRecord, identifierOf } from '../base/record.js'

/** Which subscription, business and app an event concerns, in one shape for all events. */
export interface Subject {
  /** The subscription that the event names. */
  subscription_uid: string | null
  /** The business that the event names. */
  business_uid: string | null
  /** The item that the event names. */
  purchasable_uid: string | null
  /** The app's unique name or code name, if the event has it. */
  app: string | null
  /** When the install or uninstall happened, as the platform sent it: ISO 8601 with an offset. */
  event_time: string | null
  /**
   * What it announces: `notice` and `record` concern a subscription, `installed` and `uninstalled` a business. `other` requests
   * no read.
   */
  kind: SubjectKind
}

/**
 * `notice`: names a subscription of the app. `record`: a full record of any subscription of the business. `installed`,
 * `uninstalled`: concern the business as a whole. `other`: requests no read.
 */
type SubjectKind = (typeof SUBJECT_KINDS)[number]

const SUBJECT_KINDS = ['notice', 'record', 'installed', 'uninstalled', 'other'] as const

/**
 * `subject` with null for each field that is missing or cannot be an identifier. An app's own definition may return any
 * value; this lets no control character and no overlong text pass.
 */
export function completeSubject(subject: Partial<Subject> | undefined): Subject {
  const kind = subject?.kind
  return {
    subscription_uid: identifierOf(subject?.subscription_uid),
    business_uid: identifierOf(subject?.business_uid),
    purchasable_uid: identifierOf(subject?.purchasable_uid),
    app: identifierOf(subject?.app),
    event_time: textOf(subject?.event_time),
    kind: kind !== undefined && SUBJECT_KINDS.includes(kind) ? kind : 'other',
  }
}

interface Notice {
  business_id: string
  purchasable_uid: string | null
  subscription_uid: string
  [field: string]: unknown
}

export function noticeSubject(data: Notice): Subject {
  return {
    subscription_uid: data.subscription_uid,
    business_uid: data.business_id,
    purchasable_uid: data.purchasable_uid,
    app: null,
    event_time: null,
    kind: 'notice',
  }
}

export function recordSubject(record: AnnouncedRecord): Subject {
  return {
    subscription_uid: record.uid,
    business_uid: record.business_uid,
    purchasable_uid: record.purchasable_uid,
    // "Code name of the app" (interface document, Subscription record).
    app: identifierOf(record.display_name),
    event_time: null,
    kind: 'record',
  }
}

/** The subject of an install or uninstall, in either of its two shapes. */
export function installSubject(kind: 'installed' | 'uninstalled') {
  return (data: InstallData): Subject => ({
    subscription_uid: null,
    business_uid: data.business_id,
    purchasable_uid: null,
    app: data.app_id ?? data.app_code_name ?? null,
    event_time: textOf(data.event_time),
    kind,
  })
}

export interface InstallData {
  business_id: string
  app_id?: string
  app_code_name?: string
  event_time?: unknown
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
