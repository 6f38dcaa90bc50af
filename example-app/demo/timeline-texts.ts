import { STATUS_CODES } from 'node:http'
import type { Decision } from '../../lib/index.js'
import type { Delivery, PlatformRequest } from '../../lib/testing/index.js'
import type { Activity } from '../app.js'
import { nameOf } from './businesses.js'

/** The decision as a line of the timeline. */
export function textOfDecision({ business_uid, entitled, known, reason }: Decision) {
  const answer = entitled ? 'Let in' : known ? 'Not let in' : 'Not known yet'
  return {
    kind: 'decision',
    business_uid,
    text: `${answer}: ${reason}`,
    tone: entitled ? 'good' : reason === 'unknown_business' ? 'plain' : 'bad',
  } as const
}

/** The reply to a visitor of the paid page. */
export function textOfVisit(businessUid: string, status: number) {
  const answer = status === 0 ? 'no answer' : `${status} ${STATUS_CODES[status] ?? ''}`
  return {
    kind: 'visit',
    business_uid: businessUid,
    text: `${nameOf(businessUid)} opens the report: ${answer}`,
    tone: status === 200 ? 'good' : status === 0 ? 'bad' : 'plain',
  } as const
}

// Without the target, whose last part is the delivery secret.
export function textOfDelivery({ business_uid, event, status, error, attempt, faults }: Delivery) {
  const isAccepted = status === 200
  const outcome =
    status === undefined
      ? `no reply (${error})`
      : isAccepted
        ? `acknowledged${attempt > 1 ? `, try ${attempt}` : ''}`
        : `refused with ${status}`
  const text = `${event}, ${outcome}${struck(faults)}`
  return { kind: 'delivery', business_uid, text, tone: isAccepted ? 'plain' : 'bad' } as const
}

export function textOfRequest(
  { endpoint, status, business_uid, faults }: PlatformRequest,
  isReceived: boolean,
) {
  if (endpoint !== 'read' && endpoint !== 'token') return undefined
  const what = endpoint === 'read' ? 'Subscription read' : 'Token fetched'
  const tried = endpoint === 'read' ? 'Read of the subscription' : 'Token request'
  const isGood = status === 200
  const outcome =
    status === undefined ? `${tried}: no reply` : isGood ? what : `${tried}: refused with ${status}`
  const text = `${outcome}${isReceived ? '' : ', but the process has ended'}${struck(faults)}`
  return {
    kind: endpoint,
    ...(business_uid ? { business_uid } : {}),
    text,
    tone: isGood && isReceived ? 'plain' : 'bad',
  } as const
}

export function textOfActivity(activity: Activity) {
  switch (activity.kind) {
    case 'change': {
      const { business_uid, from, to, entitled } = activity.change
      const text = `${from ?? 'nothing'} → ${to ?? 'no longer shown'}`
      return { kind: 'change', business_uid, text, tone: entitled ? 'good' : 'bad' } as const
    }
    case 'installed':
      return {
        kind: 'event',
        business_uid: activity.business_uid,
        text: 'The app prepares a workspace',
      } as const
    case 'dead':
      return {
        kind: 'event',
        text: `A handler gave up on ${activity.name}: ${activity.error}`,
        tone: 'bad',
      } as const
  }
}

function struck(faults: readonly string[]): string {
  return faults.length > 0 ? ` [${faults.join(', ')}]` : ''
}
