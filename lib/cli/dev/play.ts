import type { FaultHandle, Simulator } from '../../testing/index.js'
import { KEYS } from './keys.js'
import type { DevLog } from './log.js'

type Word = (typeof KEYS)[keyof typeof KEYS]['word']

/** Runs the actions of the keys on the simulated platform, for one business at a time and its newest subscription. */
export function createDevPlay({ platform, log }: { platform: Simulator; log: DevLog }) {
  let count = 1
  let outage: FaultHandle | undefined
  const business = () => `business-${count}`

  function current(): string | undefined {
    const own = platform.subscriptions().filter((each) => each.business_uid === business())
    return own.at(-1)?.uid
  }

  function state(): string | undefined {
    const uid = current()
    return uid === undefined ? undefined : platform.subscription(uid)?.purchase_state
  }

  const actions: Record<Exclude<Word, 'quit'>, () => void> = {
    buy() {
      const before = state()
      if (before !== undefined && before !== 'canceled') count++
      log.you(`${business()} buys the app`)
      platform.purchase({ business_uid: business(), payment: 'succeeded' })
    },
    miss() {
      const uid = current()
      log.you(`${business()} misses a payment`)
      if (uid === undefined) platform.purchase({ business_uid: business(), payment: 'failed' })
      else platform.paymentIssue(uid)
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
    const uid = current()
    if (uid === undefined) return log.you(`${business()} has not bought anything yet: press b`)
    log.you(`${business()} ${does}`)
    step(uid)
  }

  return {
    press(pressed: string): 'quit' | 'on' {
      const word = wordOf(pressed.toLowerCase())
      if (word === 'quit') return 'quit'
      if (word === undefined) {
        if (pressed.trim() !== '') log.you('unknown key: press ? to see the keys')
        return 'on'
      }
      try {
        actions[word]()
      } catch (error) {
        // The platform has no such transition.
        log.you(error instanceof Error ? error.message : String(error))
      }
      return 'on'
    },
  }
}

function wordOf(pressed: string): Word | undefined {
  const byKey = Object.entries(KEYS).find(([key, { word }]) => key === pressed || word === pressed)
  return byKey?.[1].word
}
