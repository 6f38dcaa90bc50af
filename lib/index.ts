export type {
  ChangeHandler,
  Handler,
  HandlerContext,
  HandlerFor,
  Marketplace,
  Unsubscribe,
  WebhookRegistration,
} from './api.js'
export type { Clock } from './clock.js'
export { type Decision, REASONS, type Reason, type SubscriptionVerdict } from './entitlement/decide.js'
export type { ItemOptions, PurchasableUids } from './entitlement/items.js'
export { PURCHASE_STATES, type PurchaseState } from './entitlement/purchase-state.js'
export { type NextStep, nextStepOf } from './entitlement/reasons.js'
export { ConfigError, ERROR_CODES, type ErrorCode, MarketplaceError, type Problem } from './errors.js'
export {
  defineEvent,
  type EventDefinition,
  type EventDefinitions,
  type EventSchema,
  type SchemaIssue,
} from './events/define-event.js'
export {
  type AnyEvent,
  EVENTS,
  type EventData,
  type EventName,
  type MarketplaceEvent,
  type Registry,
  type TokensOf,
} from './events/registry.js'
export type { HandlerOptions, RequestListener } from './express/handler.js'
export type { Middleware } from './express/receiver.js'
export type {
  BusinessUid,
  Guard,
  GuardDecision,
  RequireEntitlementOptions,
} from './express/require-entitlement.js'
export { type HealthProblem, PROBLEMS, type ProblemCode } from './health.js'
export { createMarketplace } from './marketplace.js'
export type { EraseOptions, EraseSummary } from './operations/erase.js'
export type { BusinessData } from './operations/export-data.js'
export type { HealthListener } from './operations/health-changes.js'
export type { Health } from './operations/health-check.js'
export type { HistoryItem, HistoryOptions } from './operations/history.js'
export type { ImportOptions } from './operations/import-options.js'
export type { ImportLine, ImportProgress, ImportResult, ImportSummary } from './operations/import-results.js'
export type { JournalApi } from './operations/journal-api.js'
export type { Action, ReplaySummary } from './operations/journal-operations.js'
export type { DeadEntry, HandlerFailure, JournalEntry } from './operations/public-entry.js'
export type { Readiness } from './operations/readiness.js'
export type { RefreshAllOptions } from './operations/refresh-all.js'
export type { SubscriptionStatus, SubscriptionsFilter } from './operations/subscriptions.js'
export type { TrackedSubscription, TrackOptions } from './operations/track.js'
export type {
  Arrivals,
  SecretReport,
  WebhookEventReport,
  WebhookReport,
} from './operations/webhooks-check.js'
export type { MarketplaceOptions, VerifyDelivery } from './options.js'
export type { RegisterResult } from './platform/register-webhook.js'
export { appToken, businessToken, directoryToken, type Token } from './platform/token.js'
export type { PostgresClient } from './postgres/connection.js'
export type { PostgresPool } from './postgres/pool.js'
export type { AnnouncedRecord, SubscriptionRecord } from './record.js'
export { type RestoreSummary, restoreBackup } from './restore.js'
export type { RestoreStep } from './sqlite/restore.js'
export type { JournalFilter } from './store/entry-filter.js'
export type { Cause, EntryKind, EntryStatus, StoreCounts } from './store/store.js'
export { type PostgresStore, type PostgresStoreOptions, postgresStore } from './store-option.js'
export type { LogFields, Logger } from './telemetry/logger.js'
export type { TokenKind } from './token-kinds.js'
export type { UnrecognisedDelivery } from './work/payloads.js'
export type { PurchaseChange } from './work/purchase-change.js'
