import type { ActionName } from './business-actions.js'
import type { Demo } from './demo.js'
import type { Expected, Step } from './run-scenario.js'
import type { Happening } from './timeline.js'

const LET_IN: Expected = { entitled: true, reason: 'purchased', report: 200 }
const NOT_PURCHASED: Expected = { entitled: false, reason: 'not_purchased', report: 402 }

/** The life of a subscription, with many faults on the way. */
export function scenarioOf(businessUid: string, demo: Demo): Step[] {
  const { simulator } = demo
  const { faults } = simulator

  function does(name: ActionName) {
    const why = demo.perform(name, businessUid)
    if (why) throw new Error(why)
  }

  /** Waits until a read has failed. The platform is cut off, so only the app knows. */
  async function readHasFailed() {
    const deadline = Date.now() + 10_000
    for (;;) {
      const { subscriptions } = await demo.decision(businessUid)
      if (subscriptions.some(({ failure }) => failure !== null)) return
      if (Date.now() > deadline) throw new Error('expected a failed read, and none failed within 10 s')
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  return [
    {
      title: 'Nobody has bought anything',
      act: () => {},
      expect: { entitled: false, reason: 'unknown_business', report: 402 },
    },
    {
      title: 'A purchase whose payment fails',
      act: () => does('buyUnpaid'),
      until: changedTo('suspended'),
      expect: NOT_PURCHASED,
    },
    {
      title: 'The payment is confirmed',
      act: () => does('confirmPayment'),
      until: changedTo('purchased'),
      expect: LET_IN,
    },
    {
      title: 'The next payment fails',
      act: () => does('failPayment'),
      until: changedTo('suspended'),
      expect: NOT_PURCHASED,
    },
    {
      title: 'The payment is confirmed, and the app is killed after its acknowledgement and before its read',
      async act() {
        await demo.killAfterTheAcknowledgement('confirmPayment', businessUid)
        await demo.startApp()
      },
      until: changedTo('purchased'),
      expect: LET_IN,
    },
    {
      title: 'The platform is cut off: the last answer stands',
      act: () => demo.cutOff(),
      expect: LET_IN,
    },
    {
      title: 'The platform is cut off: an event announces a change, and the read fails',
      async act() {
        does('failPayment')
        await readHasFailed()
      },
      expect: LET_IN,
    },
    {
      title: 'The platform is back: the app reads the new state',
      act: () => demo.bringBack(),
      until: changedTo('suspended'),
      expect: NOT_PURCHASED,
    },
    {
      title: 'Paid, missed, paid again: every delivery arrives four times, in a random order',
      async act() {
        const many = faults.add({ on: 'delivery', kind: 'duplicate', copies: 3 })
        const shuffled = faults.add({ on: 'delivery', kind: 'reorder', hold: 12 })
        for (const name of ['confirmPayment', 'failPayment', 'confirmPayment'] as const) does(name)
        await simulator.settled()
        many.remove()
        shuffled.remove()
      },
      until: changedTo('purchased'),
      expect: LET_IN,
    },
    {
      title: 'A payment fails, and the first read still shows the state before',
      act() {
        faults.add({ on: 'read', kind: 'lag', times: 1 })
        does('failPayment')
      },
      until: changedTo('suspended'),
      expect: NOT_PURCHASED,
    },
    {
      title: 'Paid once more',
      act: () => does('confirmPayment'),
      until: changedTo('purchased'),
      expect: LET_IN,
    },
    {
      title: 'The subscription is cancelled',
      act: () => does('cancel'),
      until: changedTo('canceled'),
      expect: NOT_PURCHASED,
    },
    {
      title: 'The app is uninstalled: the platform refuses tokens, and what was cancelled stays cancelled',
      act: () => does('uninstall'),
      until: (since) => since.some(({ text }) => text.includes('refused with 403')),
      expect: NOT_PURCHASED,
    },
  ]
}

function changedTo(state: string) {
  return (since: readonly Happening[]) =>
    since.some(({ kind, text }) => kind === 'change' && text.endsWith(`→ ${state}`))
}
