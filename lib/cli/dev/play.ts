import type { Delivery, FaultHandle, Simulator } from '../../testing/index.js'
import { KEYS } from './keys.js'
import type { DevLog } from './log.js'

type Word = (typeof KEYS)[keyof typeof KEYS]['word']

/**
 * Runs the actions of the keys on the simulated platform, for one business at a time and its newest subscription. The answer
 * for the business follows each of them.
 */
export function createDevPlay(options: {
  platform: Simulator
  log: Pick<DevLog, 'you' | 'keys'>
  /** The number of the first business. */
  first: number
  /** Called after each action with the number of the business. */
  keep(business: number): void
  /** Called once the webhooks of an action are delivered, with these and the `purchase_state` of the newest subscription. */
  answer(business: string, deliveries: readonly Delivery[], state: string | null): Promise<void>
}) {
  const { platform, log, first, keep, answer } = options
  let count = first
  let outage: FaultHandle | undefined
  let answering = Promise.resolve()
  const business = () => `business-${count}`

  function newest(uid = business()) {
    return platform.subscriptions().findLast(({ business_uid }) => business_uid === uid)
  }

  /** In the order of the actions. */
  function follow(before: number) {
    const uid = business()
    async function show() {
      await platform.settled()
      const sent = platform.deliveries.slice(before).filter(({ business_uid }) => business_uid === uid)
      await answer(uid, sent, newest(uid)?.purchase_state ?? null)
    }
    answering = answering.then(show).catch((error) => log.you(messageOf(error)))
  }

  const actions: Record<Exclude<Word, 'quit'>, () => void> = {
    buy() {
      const before = newest()?.purchase_state
      if (before !== undefined && before !== 'canceled') count++
      log.you(`${business()} buys the app`)
      platform.purchase({ business_uid: business(), payment: 'succeeded' })
    },
    miss() {
      if (newest() !== undefined) return withSubscription('misses a payment', platform.paymentIssue)
      log.you(`${business()} misses a payment`)
      platform.purchase({ business_uid: business(), payment: 'failed' })
    },
    confirm: () => withSubscription('pays', platform.confirmPayment),
    cancel: () => withSubscription('cancels', platform.cancel),
    uninstall() {
      log.you(`${business()} uninstalls the app`)
      platform.uninstall(business())
    },
    break() {
      if (outage) {
        outage.remove()
        outage = undefined
        log.you('the platform works again')
      } else {
        outage = platform.faults.add({ on: 'platform', kind: 'down' })
        log.you('the platform is down: every call to it fails. Press k to start it again')
      }
    },
    next() {
      count++
      log.you(`continue with ${business()}`)
    },
    help: () => log.keys(),
  }

  function withSubscription(does: string, step: (uid: string) => unknown) {
    const { uid, purchase_state } = newest() ?? {}
    if (uid === undefined) return log.you(`${business()} has not bought anything yet: press b`)
    try {
      step(uid)
    } catch {
      return log.you(`nothing happens: the subscription of ${business()} is ${purchase_state}`)
    }
    log.you(`${business()} ${does}`)
  }

  return {
    press(pressed: string): 'quit' | 'on' {
      const word = wordOf(pressed.toLowerCase())
      if (word === 'quit') return 'quit'
      if (word === undefined) {
        if (pressed.trim() !== '') log.you('unknown key: press ? to see the keys')
        return 'on'
      }
      const before = platform.deliveries.length
      try {
        actions[word]()
        keep(count)
      } catch (error) {
        log.you(messageOf(error))
      }
      if (word !== 'help') follow(before)
      return 'on'
    },
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function wordOf(pressed: string): Word | undefined {
  const byKey = Object.entries(KEYS).find(([key, { word }]) => key === pressed || word === pressed)
  return byKey?.[1].word
}
