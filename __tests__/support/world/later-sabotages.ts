import type { DocumentedSabotage } from './sabotage.js'

/**
 * Sabotages of sentences of the documents that were written after the short lives of the second oracle. These noticed ten of the
 * nineteen at first, so this is how much of an unknown mistake to expect; what was missing is in the lives since.
 */
export const LATER_SABOTAGES: readonly DocumentedSabotage[] = [
  {
    what: 'a token that is used again after a 401',
    breaks: 'It gets a new token after a 401.',
    fault: 'platform',
    source: {
      file: 'platform/tokens.ts',
      from: 'if (tokens.peek(businessUid)?.token === token) tokens.delete(businessUid)',
      to: 'void token',
    },
  },
  {
    what: 'a token without expires_in that is kept for an hour',
    breaks: 'It caches a token for 5 min without `expires_in`.',
    source: {
      file: 'platform/tokens.ts',
      from: 'return 5 * MINUTE',
      to: 'return HOUR',
    },
  },
  {
    what: 'a 429 after which reads wait 30 s at most',
    breaks: 'It waits after 429 as long as `Retry-After` demands, 1 s to 1 h.',
    fault: 'platform',
    source: {
      file: 'platform/read-result.ts',
      from: '{ retryAfterMs: waitMs }',
      to: '{ retryAfterMs: Math.min(30_000, waitMs) }',
    },
  },
  {
    what: 'a try that fails because the app closes',
    breaks: 'Interrupted work is done again after the next start: at once.',
    source: {
      file: 'work/handling/call-handlers.ts',
      from: 'if (interrupted.aborted) return undefined',
      to: '',
    },
  },
  {
    what: 'a retry that calls all handlers',
    breaks: 'If some fail, only these are called again.',
    source: {
      file: 'work/handling/call-handlers.ts',
      from: 'registered.filter((handler) => !done.has(handler))',
      to: 'registered',
    },
  },
  {
    what: 'an end of a subscription that calls nobody',
    breaks: '`onEntitlementChange` is called when access ends.',
    source: {
      file: 'work/reading/access.ts',
      from: 'if (record === null || gone !== null)',
      to: 'if (record === null)',
    },
  },
  {
    what: 'a change that always says ended',
    breaks: '`gone` is missing, revoked, ended, moved or other_item.',
    source: {
      file: 'work/reading/purchase-change.ts',
      from: 'found?.gone ?? (isOfOtherItem',
      to: "(found?.gone ? 'ended' as const : null) ?? (isOfOtherItem",
    },
  },
  {
    what: 'a change whose cause is always an event',
    breaks: '`cause` is why the subscription was read.',
    source: {
      file: 'work/reading/purchase-change.ts',
      from: "isCorrected ? 'import' : claim.cause",
      to: "isCorrected ? 'import' : 'event'",
    },
  },
  {
    what: 'a definite no while a search has no answer',
    breaks: 'Until it has answered, the gate replies 503.',
    source: {
      file: 'entitlement/decide.ts',
      from: "isSearching ? 'not_read_yet'",
      to: "isSearching && subscriptions.length > 0 ? 'not_read_yet'",
    },
  },
  {
    what: 'an erasure that leaves the business as a candidate',
    breaks: 'After businesses.erase no table has the uid of the business.',
    source: {
      file: 'store/journal/erase.ts',
      from: 'set candidate_business_uid = null,',
      to: 'set candidate_business_uid = candidate_business_uid,',
    },
  },
  {
    what: 'a change that does not wait for its answer',
    breaks: 'While the answer is not known, no handler is called.',
    source: {
      file: 'work/handling/payloads.ts',
      from: 'if (known) return',
      to: 'if (known || !entitled) return',
    },
  },
  {
    what: 'installs in the order of their arrival',
    breaks: 'Installs and uninstalls are ordered by event_time.',
    source: {
      file: 'store/subscriptions/requests.ts',
      from: '(subscriptions.install_at is null or given.at >= subscriptions.install_at',
      to: '(subscriptions.install_at is null or given.at > 0',
    },
  },
  {
    what: 'an event of another app that ends the access of a business',
    breaks: 'With `app.codeName`, only installs of the app count.',
    source: {
      file: 'work/receiving/requested-reads.ts',
      from: 'codeNames.length === 0 || app === null || codeNames.includes(app)',
      to: 'true',
    },
  },
  {
    what: 'an answer that is kept in memory for a minute',
    breaks: 'A changed decision reaches the other instances within five seconds.',
    source: {
      file: 'entitlement/decision-cache.ts',
      from: 'ttlMs = 5 * SECOND',
      to: 'ttlMs = 60 * SECOND',
    },
  },
  {
    what: 'a subscription that was never read and is given up after three tries',
    breaks: 'A subscription that was never read is given up after 12 tries and 72 h.',
    fault: 'noTokens',
    source: {
      file: 'work/reading/schedule.ts',
      from: 'REFUSED_TRIES = 12',
      to: 'REFUSED_TRIES = 3',
    },
  },
  {
    what: 'a deadline of handlers that only rejects',
    breaks: '`signal` is aborted after `handlers.timeoutMs`.',
    source: {
      file: 'work/handling/call-handler.ts',
      from: `          interruption.abort(error)
          reject(error)`,
      to: '          reject(error)',
    },
  },
  {
    what: 'a record of another business that counts',
    breaks: 'Only a record that was read with your own token grants access.',
    source: {
      file: 'platform/read-result.ts',
      from: 'records.filter((record) => record.business_uid === businessUid)',
      to: 'records',
    },
  },
  {
    what: 'retention of events that is not kept',
    breaks: 'Events that are done are deleted after `retention.eventsMs`.',
    source: {
      file: 'store/journal/prune.ts',
      from: 'event: eventsMs,',
      to: 'event: changesMs,',
    },
  },
  {
    what: 'a reply of the route that may be stored',
    breaks: "The guard's own replies are no-store.",
    source: {
      file: 'express/reply.ts',
      from: "'Cache-Control': 'no-store',",
      to: "'Cache-Control': 'public',",
    },
  },
]
