import type { EventDefinitions } from '../events/define-event.js'
import type { EventName, Registry, TokensOf } from '../events/registry.js'
import type { WebhookReport } from '../operations/health/webhooks-check.js'
import type { RegisterResult } from '../platform/register-webhook.js'
import type { Token } from '../platform/token.js'

/**
 * The methods that register webhooks, and count what has arrived.
 *
 * @example const targetUrl = marketplace.webhooks.targetUrl('https://app.example/webhooks/marketplace')
 */
export interface WebhookMethods<Custom extends EventDefinitions = Record<never, never>> {
  /** Every event by its registration name, the app's own included, with the kinds of token that register it. */
  readonly events: {
    readonly [Name in keyof Registry<Custom>]: {
      /** The kinds of token that register the event. */
      readonly tokens: Registry<Custom>[Name]['tokens']
    }
  }
  /**
   * The address to register with the platform: `mountUrl` and the first delivery secret. Treat it as a secret.
   *
   * @example const targetUrl = marketplace.webhooks.targetUrl('https://app.example/webhooks/marketplace')
   */
  targetUrl(mountUrl: string): string
  /**
   * Registers a target for an event. A token of a kind the event does not accept is a type error, and rejects
   * `token_kind_not_accepted`. Registering again is a success too.
   *
   * @example
   * const token = await marketplace.fetchAppToken('business-1')
   * await marketplace.webhooks.register({ event: 'application/installed', targetUrl, token })
   */
  register(
    registration: WebhookRegistration<EventName<Registry<Custom>>, Registry<Custom>>,
  ): Promise<RegisterResult>
  /**
   * Counts the events that have arrived: how many, when, and with which delivery secret. The documented calls of the
   * platform cannot list registrations. The counts are those of the journal, at most its newest 100,000 entries; `since`
   * says from when on they are complete.
   *
   * @example
   * const { since, events } = await marketplace.webhooks.check()
   * const silent = events.filter(({ count }) => count === 0).map(({ event }) => event)
   */
  check(): Promise<WebhookReport>
}

/** For each event its own kinds of token, so that a union of events does not mix them. */
type WebhookRegistration<Name extends EventName<R>, R extends EventDefinitions> = {
  [Each in Name]: {
    /** The registration name of the event. */
    event: Each
    /** The address of `targetUrl(mountUrl)`, which ends with the delivery secret. */
    targetUrl: string
    /** A token of a kind that registers the event, such as that of `fetchAppToken(businessUid)`. */
    token: Token<TokensOf<Each, R>>
  }
}[Name]
