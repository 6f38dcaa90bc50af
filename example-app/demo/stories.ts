import { stateOf } from './business-actions.js'
import { nameOf } from './businesses.js'
import type { ButtonName } from './code-pieces.js'
import type { Demo } from './demo.js'
import { becomes } from './run-scenario.js'
import type { Happening } from './timeline.js'

/** A tour of the package. Each step is a press of a button and its result. */
export interface Story {
  title: string
  summary: string
  business_uid: string
  steps: readonly StoryStep[]
  /** The conclusion of the story. */
  end: string
}

interface StoryStep {
  /** The words on the button. */
  press: string
  /** The button whose code runs. */
  button: ButtonName
  /** The text before the step. */
  before: string
  /** The text after the step. */
  after: string
  act(demo: Demo, businessUid: string): unknown
  /** Whether the step has ended, by the events since it began. */
  until(since: readonly Happening[]): boolean
}

const OPEN = {
  press: 'Open the report',
  button: 'openReport',
  act: (demo: Demo, businessUid: string) => demo.visit(businessUid),
} as const

export const STORIES = {
  pays: {
    title: 'A customer pays',
    summary: 'A webhook arrives, the package reads the subscription, the report opens.',
    business_uid: 'bakery-lindt',
    steps: [
      {
        ...OPEN,
        before: 'Bakery Lindt has not bought the app, and tries its paid page.',
        after: 'The gate answers 402 Payment Required: no subscription of this business is known.',
        until: visited(402),
      },
      {
        press: 'Buy and pay',
        button: 'buy',
        before: 'The bakery buys the app on the platform. The platform sends a webhook.',
        after:
          'The webhook was written to disk, then acknowledged. The webhook only announces a change. The package read the subscription, and the record decides the answer.',
        act: (demo, businessUid) => must(demo.perform('buy', businessUid)),
        until: decided('Let in'),
      },
      {
        ...OPEN,
        before: 'The bakery tries the same page again.',
        after: '200 OK: the gate lets it through.',
        until: visited(200),
      },
    ],
    end: 'From the purchase to the open page, without a line of code that knows about webhooks.',
  },
  misses: {
    title: 'A customer misses a payment',
    summary: 'The report closes by itself, and opens again when the payment arrives.',
    business_uid: 'yoga-studio-mitte',
    steps: [
      {
        press: 'Buy and pay',
        button: 'buy',
        before: 'Yoga Studio Mitte buys the app.',
        after: 'The studio may use the app.',
        act: (demo, businessUid) => must(demo.perform('buy', businessUid)),
        until: decided('Let in'),
      },
      {
        press: 'Miss a payment',
        button: 'failPayment',
        before: 'A month later its bank refuses the payment. The platform suspends the subscription.',
        after: 'The subscription was read back as suspended. The studio is not let in any more.',
        act: (demo, businessUid) => must(demo.perform('failPayment', businessUid)),
        until: decided('Not let in'),
      },
      {
        ...OPEN,
        before: 'What does the studio see now?',
        after: '402 Payment Required, with a sentence that your own page can show.',
        until: visited(402),
      },
      {
        press: 'Confirm payment',
        button: 'confirmPayment',
        before: 'The payment arrives after all.',
        after: 'One webhook, one read: the studio is let in again.',
        act: (demo, businessUid) => must(demo.perform('confirmPayment', businessUid)),
        until: decided('Let in'),
      },
    ],
    end: 'The answer follows the platform by itself.',
  },
  dies: {
    title: 'The app dies',
    summary: 'kill -9 right after a webhook arrives, and nothing is lost.',
    business_uid: 'cafe-morgenrot',
    steps: [
      {
        press: 'Buy, then kill -9',
        button: 'buyAndKill',
        before:
          'Café Morgenrot pays. The app acknowledges the webhook, and is killed before it reads the subscription.',
        after:
          'The app is down, and the platform has its acknowledgement. Only the line on disk remains of the purchase.',
        act: (demo, businessUid) => demo.killAfterTheAcknowledgement('buy', businessUid),
        until: (since) => since.some(({ kind, text }) => kind === 'demo' && text.includes('SIGKILL')),
      },
      {
        press: 'Miss a payment, then pay',
        button: 'missAndPay',
        before:
          'Meanwhile the café misses a payment, and pays it later. The demo drops both webhooks, and never sends them again.',
        after: 'Both are lost. That does no harm: the next read shows the present state.',
        act: missAndPay,
        until: (since) =>
          since.filter(({ kind, tone }) => kind === 'delivery' && tone === 'bad').length === 2,
      },
      {
        press: 'Start the app',
        button: 'startApp',
        before: 'The app starts again, with the same database.',
        after:
          'The line was still on disk. So the app read the subscription as it is now, and the café may use the app.',
        act: (demo) => demo.startApp(),
        until: decided('Let in'),
      },
    ],
    end: 'An acknowledged webhook is on disk, and the next read shows every missed change. Nothing is lost.',
  },
} as const satisfies Record<string, Story>

export type StoryName = keyof typeof STORIES

export function isStoryName(name: string): name is StoryName {
  return Object.hasOwn(STORIES, name)
}

/** Plays a step. Resolves to null, or to the reason why it did not end. */
export async function playStep(demo: Demo, name: StoryName, number: number, timeoutMs = 20_000) {
  const story: Story = STORIES[name]
  const step = story.steps[number]
  if (!step) return 'This step does not exist'
  const { timeline } = demo
  try {
    if (number === 0) await setScene(demo, story.business_uid, timeoutMs)
    const before = timeline.all().at(-1)?.id ?? 0
    await step.act(demo, story.business_uid)
    const isOver = () => step.until(timeline.all().filter(({ id }) => id > before))
    return (await becomes(isOver, timeline, timeoutMs))
      ? null
      : `The step has not ended after ${timeoutMs / 1_000} s`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Sets up the start of a story: no faults, and the business has no active subscription. */
async function setScene(demo: Demo, businessUid: string, timeoutMs: number) {
  demo.bringBack()
  demo.speedUp()
  await demo.startApp()
  if (!['purchased', 'suspended'].includes(stateOf(demo.standing(businessUid)))) return
  const before = demo.timeline.all().at(-1)?.id ?? 0
  must(demo.perform('cancel', businessUid))
  const isOver = () =>
    demo.timeline
      .all()
      .some(({ id, kind, text }) => id > before && kind === 'change' && text.endsWith('→ canceled'))
  if (!(await becomes(isOver, demo.timeline, timeoutMs))) throw new Error('The cancellation was not read')
}

function decided(answer: string) {
  return (since: readonly Happening[]) =>
    since.some(({ kind, text }) => kind === 'decision' && text.startsWith(`${answer}:`))
}

function visited(status: number) {
  return (since: readonly Happening[]) =>
    since.some(({ kind, text }) => kind === 'visit' && text.includes(` ${status} `))
}

function missAndPay({ simulator, timeline, perform }: Demo, businessUid: string) {
  const lost = simulator.faults.add({ on: 'delivery', kind: 'drop', business_uid: businessUid })
  const text = `${nameOf(businessUid)} misses a payment, then pays`
  timeline.asOne({ kind: 'platform', business_uid: businessUid, text }, () => {
    must(perform('failPayment', businessUid))
    must(perform('confirmPayment', businessUid))
  })
  lost.remove()
}

function must(why: string | null) {
  if (why) throw new Error(why)
}
