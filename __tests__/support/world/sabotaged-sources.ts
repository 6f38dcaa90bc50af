import type { DocumentedSabotage } from './sabotage.js'

/** Sabotages of sentences of the documents that change one place of the package. */
export const SABOTAGED_SOURCES: readonly DocumentedSabotage[] = [
  // Whoever has the delivery secret delays no customer, and a payload never grants access.
  {
    what: 'reads that wait a second after a 429',
    breaks: 'After a 429 all reads wait as long as the platform asks.',
    fault: 'platform',
    source: {
      file: 'platform/http.ts',
      from: 'Math.min(HOUR, Math.max(SECOND, ms))',
      to: 'SECOND',
    },
  },
  {
    what: 'a read under way that makes its next call after a 429',
    breaks: 'After a 429 all reads wait as long as the platform asks.',
    fault: 'platform',
    source: {
      file: 'platform/client.ts',
      from: 'if (leftMs > 0)',
      to: 'if (leftMs > Number.POSITIVE_INFINITY)',
    },
  },
  {
    what: 'a subscription that any later event moves to the business it names',
    breaks: 'Until a subscription has been read, the first event that names it decides its business.',
    fault: 'sender',
    source: {
      file: 'store/subscriptions/requests.ts',
      from: `candidate_business_uid = case
        when excluded.business_uid <> subscriptions.business_uid then excluded.business_uid
        else subscriptions.candidate_business_uid end`,
      to: 'business_uid = excluded.business_uid',
    },
  },
  {
    what: 'a pause between two reads of a subscription of 20 ms',
    breaks: 'Deliveries cause at most 4 reads of a subscription a second.',
    source: {
      file: 'store/port/subscriptions.ts',
      from: 'MIN_READ_INTERVAL_MS = 250',
      to: 'MIN_READ_INTERVAL_MS = 20',
    },
  },
  // When the platform answers, the database becomes equal to it.
  {
    what: 'a failed search that counts as an answer',
    breaks: 'Until the platform has answered once, the reason is not_read_yet, whatever was named.',
    source: {
      file: 'work/searching/searcher.ts',
      from: "if (result.kind === 'refused')",
      to: "if (result.kind !== 'throttled')",
    },
  },
  {
    what: 'one verification of an event whose change no read has shown',
    breaks: 'A read that lags behind its event is repeated after 5 s, 30 s, 2 min, 10 min.',
    source: {
      file: 'work/reading/schedule.ts',
      from: '[5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE]',
      to: '[5 * SECOND]',
    },
  },
  {
    what: 'a business that an event named and that is forgotten after one read',
    breaks:
      'If an event names another business, each read that does not find it at the former business tries the named one.',
    fault: 'move',
    source: {
      file: 'work/reading/facts.ts',
      from: 'return isDenied || isOld ? { candidate: null } : {}',
      to: 'return { candidate: null }',
    },
  },
  {
    what: 'an older record that counts when it is shown twice',
    breaks: 'If the platform shows the same older record for an hour, the package believes it.',
    source: {
      file: 'work/reading/conclude-read.ts',
      from: 'if (env.now - since >= LAG_LIMIT_MS) return',
      to: 'if (isSame) return',
    },
  },
  // While the platform is down, the last answer stands.
  {
    what: 'a failed read that confirms the answer',
    breaks: 'It stands for freshness.maxStaleMs after the last read that confirmed it.',
    fault: 'platform',
    source: {
      file: 'store/subscriptions/finishes.ts',
      from: 'read_at = case when is_found = 0 then read_at else',
      to: 'read_at = case when is_found = 0 and subscriptions.record is null then read_at else',
    },
  },
  {
    what: 'an answer that stands for ever while the store is down',
    breaks: 'It stands for freshness.maxStaleMs after the last read that confirmed it.',
    source: {
      file: 'entitlement/decision-cache.ts',
      from: 'const decision = decisionLater(last.decision, maxStaleMs, now)',
      to: 'const decision = last.decision.asOf === null || now < 0 ? undefined : last.decision',
    },
  },
  {
    what: 'a cached answer that does not age while the machine sleeps',
    breaks: 'It stands for freshness.maxStaleMs, also while the machine sleeps.',
    fault: 'suspended',
    source: { file: 'base/clock.ts', from: 'slept += Math.max(0, leapt)', to: 'slept += 0' },
  },
  {
    what: 'a gate that answers 402 while the answer is stale',
    breaks: 'Then the reason is stale, and the gate answers 503.',
    source: {
      file: 'express/require-entitlement.ts',
      from: 'else if (decision.known === false) replyDenied',
      to: "else if (decision.reason === 'not_read_yet') replyDenied",
    },
  },
  {
    what: 'an answer of entitledWhen that goes on after its end',
    breaks: 'Access that entitledWhen gives until a time always ends then.',
    source: {
      file: 'entitlement/own-rule.ts',
      from: 'if (until === null || until > now) return { entitled, until }',
      to: 'if (until !== undefined) return { entitled, until }',
    },
  },
  // A subscription that the platform no longer shows ends, and an outage is not the end of many.
  {
    what: 'an install or uninstall that requests no read',
    breaks:
      'The business uninstalled the app, and the platform refuses a token: it ends a minute after the first refusal.',
    fault: 'absence',
    source: {
      file: 'work/receiving/requested-reads.ts',
      from: "return isOurs ? { kind: 'business'",
      to: "return isOurs && !install ? { kind: 'business'",
    },
  },
  {
    what: 'an event whose record says nothing about an end',
    breaks:
      'An event contains a record that entitledWhen rejects, and the platform refuses the read: it ends within seconds.',
    source: {
      file: 'work/receiving/intake.ts',
      from: 'refresh: reads.requestedBy(subject, announcedBy(name, data, isAccess)),',
      to: 'refresh: reads.requestedBy(subject),',
    },
  },
  {
    what: 'an end after the first reply without the record',
    breaks: 'The platform answered three times that it has no such record: it ends a minute after the first.',
    fault: 'absence',
    source: {
      file: 'work/reading/end-evidence.ts',
      from: "return missing + 1 >= MISSING_READS && isLong ? 'missing' : undefined",
      to: "return 'missing'",
    },
  },
  {
    what: 'a subscription that has ended and is read once more only',
    breaks:
      'It is read again after 5 s, 30 s and 2 min, then after half of the time since the end, for ever.',
    fault: 'absence',
    source: {
      file: 'work/reading/conclude-read.ts',
      from: 'nextInMs: Math.min(verifyInMs ?? reconcileInMs, slowingSince(read, goneSince)),',
      to: 'nextInMs: verifyInMs ?? null,',
    },
  },
  {
    what: 'a reply with 503 that counts as a refusal of the business',
    breaks: 'Refused app credentials and calls without an answer end nothing.',
    fault: 'platform',
    source: {
      file: 'platform/read-result.ts',
      from: 'if (status >= 500 || status === 408)',
      to: 'if (status >= 504 || status === 408)',
    },
  },
  {
    what: 'an end that is believed whatever happens to the other businesses',
    breaks: 'Any end is held back while three or more fail since about the same time.',
    fault: 'noTokens',
    source: {
      file: 'work/reading/believe-end.ts',
      from: 'const { failing, served, isSteady, exist, lately } = others',
      to: `if (evidence !== 'never shown') return 'believed'
        const { failing, served, isSteady, exist, lately } = others`,
    },
  },
  {
    what: 'a business that is shown again and has no others read',
    breaks:
      'When the platform shows a subscription of one business again, the others are read within minutes.',
    fault: 'noTokens',
    source: {
      file: 'work/reading/believe-end.ts',
      from: "await store.readOthers(claim, { which: 'failing', pauseMs: MINUTE, limit: MOST_READS })",
      to: '',
    },
  },
  {
    what: 'a no for a purchase whose verifications go on',
    breaks:
      'Who buys during an outage gets no definite no: after the last verification the answer stays not_read_yet.',
    source: { file: 'entitlement/decide.ts', from: "if (verifying) return 'not_read_yet'", to: '' },
  },
  {
    what: 'a refused read that is repeated every two minutes',
    breaks: 'A refused read is repeated after pauses that grow to half an hour.',
    fault: 'noTokens',
    source: {
      file: 'work/reading/schedule.ts',
      from: 'return Math.min(30 * MINUTE, Math.max(atFirst, sinceMs / 10))',
      to: 'return Math.min(2 * MINUTE, atFirst)',
    },
  },
  // Every observed change reaches every handler at least once, in order, and calls say when access begins or ends.
  {
    what: 'an entry that is done when one of its handlers has returned',
    breaks: 'Every observed change reaches every handler at least once.',
    source: {
      file: 'work/handling/call-handlers.ts',
      from: 'if (failures.length === 0) {',
      to: 'if (failures.length === 0 || failures.length < left.length) {',
    },
  },
  {
    what: 'one call for all changes of a business that wait',
    breaks: 'Every observed change reaches every handler at least once.',
    source: {
      file: 'work/handling/units.ts',
      from: "first.kind === 'entitlement' ?",
      to: "first.kind === 'entitlement' || first.kind === 'change' ?",
    },
  },
  {
    what: 'no call of onEntitlementChange when access ends',
    breaks:
      'onEntitlementChange is called when a subscription gives a business another item than before, or none any more.',
    source: {
      file: 'work/reading/access.ts',
      from: 'return before === after ?',
      to: 'return before === after || after === null ?',
    },
  },
  {
    what: 'changes in order for each subscription, and not for their business',
    breaks: 'Changes of one business are handled in order, never two at once.',
    source: {
      file: 'work/reading/purchase-change.ts',
      from: 'key: changesKey(businessUid)',
      to: 'key: changesKey(subscription_uid)',
    },
  },
  {
    what: 'events of one subscription without an order',
    breaks: 'Events of one subscription are handled in order, never two at once.',
    source: {
      file: 'work/receiving/intake.ts',
      from: 'key: subscriptionUid ? subscriptionKey(subscriptionUid)',
      to: 'key: subscriptionUid ? id',
    },
  },
  {
    what: 'a lane that is given back while its interrupted handler runs on',
    breaks: 'This holds for several instances too, and while an app closes.',
    source: {
      file: 'work/handling/call-handler.ts',
      from: 'const onInterrupted = () => interruption.abort(leaseLost())',
      to: `const onInterrupted = () => {
          interruption.abort(leaseLost())
          reject(leaseLost())
        }`,
    },
  },
  // Work that ends the process, health, and the rest.
  {
    what: 'an entry that is dead after one end of the process',
    breaks: 'An entry becomes dead only if the process ended or froze five times while no other handler ran.',
    fault: 'deadly',
    source: { file: 'store/port/journal.ts', from: 'MAX_LAPSES = 5', to: 'MAX_LAPSES = 1' },
  },
  {
    what: 'health that does not know of failed and dead entries',
    breaks: 'health() is not ok while a handler fails.',
    fault: 'handlers',
    source: {
      file: 'operations/health/problems-of-counts.ts',
      from: 'const { dead, retrying, lapsed, unsearched } = counts',
      to: 'const { dead, retrying, lapsed, unsearched } = { ...counts, dead: 0, retrying: 0 }',
    },
  },
  {
    what: 'health that does not know of failed reads',
    breaks: 'health() is not ok while most reads fail or are refused.',
    fault: 'platform',
    source: {
      file: 'work/reading/outcomes.ts',
      from: 'return outage ? [...ofPause, outage] : ofPause',
      to: 'return []',
    },
  },
  {
    what: 'a call of the platform that may take an hour',
    breaks: 'The time of every call has a limit.',
    fault: 'platform',
    source: {
      file: 'platform/http.ts',
      from: 'withDeadline(reply, timeoutMs,',
      to: 'withDeadline(reply, 3_600_000,',
    },
  },
  {
    what: 'an erasure that leaves the changes of the business',
    breaks: 'After businesses.erase no table has the uid of the business or of its subscriptions.',
    source: {
      file: 'store/journal/erase.ts',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
      from: "where ${which} and kind <> 'action' limit",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a source
      to: "where ${which} and kind = 'event' limit",
    },
  },
  {
    what: 'a copy that forgets the tries of entries',
    breaks:
      'Its handlers get exactly what was not finished, in the same order and with the same id and tries.',
    source: {
      file: 'store/sql/copy/copy.ts',
      from: 'new Map(rows.map((row) => [row[key], row]))',
      to: `new Map(rows.map((row) => [row[key], 'attempts' in row ? { ...row, attempts: 0 } : row]))`,
    },
  },
  {
    what: 'an app that interrupts its handlers as soon as it closes',
    breaks: 'close() waits up to closeTimeoutMs for work under way.',
    source: {
      file: 'work/leases/lease-loop.ts',
      from: 'await endWithin(graceMs)',
      to: 'await endWithin(0)',
    },
  },
]
