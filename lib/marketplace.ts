import type { Marketplace } from './api/marketplace.js'
import { SECOND } from './base/clock.js'
import { MarketplaceError } from './base/errors.js'
import { requireIdentifier } from './base/record.js'
import type { EventDefinitions } from './events/define-event.js'
import { type EventName, requireEvent } from './events/registry.js'
import { createSecretSearch, targetUrl } from './express/delivery-secret.js'
import { createDoors } from './express/doors.js'
import { createEntitlementRoute } from './express/entitlement-route.js'
import { createRequireEntitlement } from './express/require-entitlement.js'
import { createErase } from './operations/businesses/erase.js'
import { createExport } from './operations/businesses/export.js'
import { createHistory } from './operations/businesses/history.js'
import { createBusinessList } from './operations/businesses/list.js'
import { createRefreshAndWait } from './operations/businesses/refresh.js'
import { createJournalOperations } from './operations/journal/journal-operations.js'
import { createLook } from './operations/subscriptions/look.js'
import { createSubscriptionMethods } from './operations/subscriptions/subscriptions.js'
import { type MarketplaceOptions, readOptions } from './options.js'
import { createParts } from './parts.js'
import { appToken } from './platform/token.js'
import type { AnyHandler } from './work/handling/handlers.js'

/**
 * Wires all parts for one app. Two marketplaces share nothing.
 * Throws `ConfigError` with all faults of the options at once.
 *
 * @example const marketplace = createMarketplace({ app, platform, deliverySecrets: secrets.split(',') })
 */
export function createMarketplace<const Custom extends EventDefinitions = Record<never, never>>(
  given: MarketplaceOptions<Custom>,
): Marketplace<Custom> {
  const options = readOptions(given)
  const parts = createParts(given, options, () => marketplace)
  const { registry, store, clock, rules, platform, entitlements, handlers, reporting } = parts
  const { whileOpen } = parts.lifecycle
  const { deliverySecrets, internals } = options

  const { explain } = entitlements
  const decisions = { explain, purchasableUids: options.app.purchasableUid, clock }
  const subscriptions = createSubscriptionMethods({ store, rules, clock })
  const exported = createExport({ store, rules, clock })
  const journal = createJournalOperations({ store, clock, onAction: reporting.action })

  const marketplace: Marketplace<Custom> = {
    ...createDoors({
      indexOfSecret: createSecretSearch(deliverySecrets),
      accept: (...delivery) =>
        parts.settling.accepting(() => reporting.accepting(() => parts.intake.accept(...delivery))),
      turnAway: parts.intake.turnAway,
      verifyDelivery: given.verifyDelivery,
      bodyLimitBytes: options.bodyLimitBytes,
      bodyTimeoutMs: internals.bodyTimeoutMs,
      acceptTimeoutMs: internals.acceptTimeoutMs,
      clock,
      count: reporting.delivery,
      onOtherwiseError: reporting.otherwiseFailed,
    }),

    on(event, handler) {
      requireEvent(registry, event)
      return handlers.on(event, handler)
    },
    onAny: (handler) => handlers.onAny(handler as AnyHandler),
    onUnrecognised: handlers.onUnrecognised,
    onEntitlementChange: handlers.onEntitlement,
    onPurchaseChange: handlers.onChange,
    onHandlerError: reporting.onHandlerError,

    isEntitled: entitlements.isEntitled,
    explain,
    waitForEntitlement: entitlements.waitForEntitlement,
    requireEntitlement: createRequireEntitlement({
      ...decisions,
      measure: reporting.gate,
      onDenied: reporting.denied,
      onPurchaseUrlFailed: reporting.purchaseUrlFailed,
    }),
    entitlementRoute: createEntitlementRoute(decisions),

    subscriptions: {
      list: whileOpen(subscriptions.list),
      get: whileOpen(subscriptions.get),
      look: whileOpen(
        createLook((request) => reporting.reading(request, () => platform.readSubscription(request))),
      ),
      track: whileOpen(subscriptions.track),
      import: whileOpen(parts.imports.importSubscriptions),
      refreshAll: whileOpen(subscriptions.refreshAll),
    },
    businesses: {
      list: whileOpen(createBusinessList({ store })),
      refresh: whileOpen(
        createRefreshAndWait({
          store,
          explain,
          // Time for a token and a read, after the pause between two reads.
          timeoutMs: 2 * internals.callTimeoutMs + SECOND,
          searches: parts.searches,
          rules,
          clock,
        }),
      ),
      history: whileOpen(createHistory({ store, rules })),
      export: whileOpen(exported.data),
      exportText: parts.lifecycle.eachWhileOpen(exported.text),
      erase: whileOpen(createErase({ store, clock, onAction: reporting.action })),
    },
    journal: {
      list: whileOpen(journal.list),
      get: whileOpen(journal.get),
      replay: whileOpen(journal.replay),
      replayAll: whileOpen(journal.replayAll),
      recordAction: whileOpen(journal.recordAction),
    },

    webhooks: {
      events: registry,
      targetUrl: (mountUrl) => targetUrl(mountUrl, deliverySecrets[0] as string),
      register: whileOpen((registration) =>
        platform.registerWebhook({
          ...registration,
          accepts: (event: string) =>
            Object.hasOwn(registry, event) ? registry[event as EventName].tokens : undefined,
        }),
      ),
      check: whileOpen(parts.check.check),
    },
    fetchAppToken: whileOpen(async (businessUid) =>
      appToken(await platform.fetchAppToken(requireIdentifier(businessUid, 'business_uid'))),
    ),

    backup: whileOpen(async (path) => {
      if (typeof path !== 'string' || path === '' || path.includes('\0'))
        throw new MarketplaceError(
          'argument_invalid',
          'Cannot back up: the path must be the path of a new file',
        )
      await store.backup(path)
    }),
    platformReport: whileOpen(parts.platformReport),
    settled: whileOpen(parts.settling.settled),
    health: parts.healthChanges.health,
    onHealthChange: parts.healthChanges.onHealthChange,
    readiness: parts.readiness,
    start: parts.lifecycle.start,
    close: parts.lifecycle.close,
  }
  return marketplace
}
