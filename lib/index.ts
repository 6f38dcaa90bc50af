export type { JournalMethods } from './api/journal-methods.js'
export type { Handler, HandlerContext, HandlerFor, Marketplace } from './api/marketplace.js'
export type { Clock } from './base/clock.js'
export { ConfigError, ERROR_CODES, type ErrorCode, MarketplaceError } from './base/errors.js'
export { type HealthProblem, PROBLEMS, type ProblemCode } from './base/health.js'
export type { SubscriptionRecord } from './base/record.js'
export { type CopyOptions, type CopySummary, copyStore } from './copy.js'
export type { Decision } from './entitlement/decide.js'
export type { EntitlementChange } from './entitlement/entitlement-change.js'
export { nextStepOf } from './entitlement/next-step.js'
export type { EntitledWhen } from './entitlement/own-rule.js'
export { PURCHASE_STATES, type PurchaseState } from './entitlement/purchase-state.js'
export { type NextStep, REASONS, type Reason } from './entitlement/reasons.js'
export { gracePeriod, paidThrough } from './entitlement/rules.js'
export type { WaitOptions } from './entitlement/wait-for-entitlement.js'
export { failureInWords } from './entitlement/words.js'
export { optionsFromEnvironment } from './environment.js'
export { defineEvent, type EventDefinitions } from './events/define-event.js'
export {
  type AnyEvent,
  EVENTS,
  type EventData,
  type EventName,
  type MarketplaceEvent,
} from './events/registry.js'
export type { EntitlementRouteOptions } from './express/decision-for-request.js'
export type { ListenerOptions, Middleware, RequestListener } from './express/doors.js'
export type { EntitlementRoute } from './express/entitlement-route.js'
export type { Guard, GuardDecision, RequireEntitlementOptions } from './express/require-entitlement.js'
export type { VerifyDelivery } from './express/take-delivery.js'
export { createMarketplace } from './marketplace.js'
export type { BusinessData } from './operations/businesses/export.js'
export type { HistoryItem } from './operations/businesses/history.js'
export type { BusinessesPage } from './operations/businesses/list.js'
export type { Health, Readiness } from './operations/health/health-check.js'
export type { WebhookReport } from './operations/health/webhooks-check.js'
export type { JournalFilter } from './operations/journal/entry-filter.js'
export type { HandlerFailure, JournalEntry } from './operations/journal/public-entry.js'
export type { ImportOptions, ImportSummary } from './operations/subscriptions/import.js'
export type { LookedUp } from './operations/subscriptions/look.js'
export type {
  SubscriptionStatus,
  SubscriptionsFilter,
  TrackedSubscription,
} from './operations/subscriptions/subscriptions.js'
export type { MarketplaceOptions } from './options.js'
export type { FindSubscriptions } from './platform/find-subscriptions.js'
export { appToken, businessToken, directoryToken, type Token } from './platform/token.js'
export type { PostgresPool } from './postgres/pool.js'
export { restoreBackup } from './restore.js'
export { type PostgresStore, type PostgresStoreOptions, postgresStore } from './store-option.js'
export type { Logger } from './telemetry/logger.js'
export type { UnrecognisedDelivery } from './work/handling/payloads.js'
export type { PurchaseChange } from './work/reading/purchase-change.js'
