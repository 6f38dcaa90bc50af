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
  /** The conclusion of the story. The report is open then. */
  end: string
}

/** The demo, and the answers that its page shows. */
type Stage = Demo & {
  visit(businessUid: string): unknown
  ask(businessUid: string): Promise<void>
  of(businessUid: string): { decision: { entitled: boolean } | null }
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
  /** The report while `before` is shown. If it becomes another one, somebody else has acted, and the text would be wrong. */
  report: 'closed' | 'open' | 'stopped'
  act(stage: Stage, businessUid: string): unknown
  /** Whether the step has ended, by the events since it began that concern the business. */
  until(since: readonly Happening[]): boolean
}

const OPEN = {
  press: 'Open the report',
  button: 'openReport',
  act: (stage: Stage, businessUid: string) => stage.visit(businessUid),
} as const

export const STORIES = {
  pays: {
    title: 'A customer pays',
    summary: 'A webhook arrives, the package reads the subscription, the report opens.',
    business_uid: 'bakery-lindt',
    steps: [
      {
        ...OPEN,
        report: 'closed',
        before: 'Bakery Lindt has no subscription, and tries the paid page of your app.',
        after: 'The gate answers 402 Payment Required: this business has not paid.',
        until: visited(402),
      },
      {
        press: 'Buy and pay',
        button: 'buy',
        report: 'closed',
        before: 'Now the bakery buys the app on the platform, which sends a webhook.',
        after:
          'The webhook was written to disk, then acknowledged. The webhook only announces a change. The package read the subscription, and the record decides the answer.',
        act: (demo, businessUid) => must(demo.perform('buy', businessUid)),
        until: decided('Let in'),
      },
      {
        ...OPEN,
        report: 'open',
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
        report: 'closed',
        before: 'Yoga Studio Mitte buys the app.',
        after: 'The studio may use the app.',
        act: (demo, businessUid) => must(demo.perform('buy', businessUid)),
        until: decided('Let in'),
      },
      {
        press: 'Miss a payment',
        button: 'failPayment',
        report: 'open',
        before: 'A month later its bank refuses the payment. The platform suspends the subscription.',
        after: 'The subscription was read back as suspended. The studio is not let in any more.',
        act: (demo, businessUid) => must(demo.perform('failPayment', businessUid)),
        until: decided('Not let in'),
      },
      {
        ...OPEN,
        report: 'closed',
        before: 'What does the studio see now?',
        after: '402 Payment Required, with a sentence that your own page can show.',
        until: visited(402),
      },
      {
        press: 'Confirm payment',
        button: 'confirmPayment',
        report: 'closed',
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
        report: 'closed',
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
        report: 'stopped',
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
        report: 'stopped',
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

const LONGEST_MS = 20_000

/** Plays a step. Resolves to null, or to the reason why it did not end. */
export function playStep(stage: Stage, name: StoryName, number: number) {
  const { business_uid, steps }: Story = STORIES[name]
  return whyNot(async () => {
    const step = steps[number]
    if (!step) throw new Error('This step does not exist')
    await happens(stage, business_uid, () => step.act(stage, business_uid), step.until)
  })
}

/** Sets up the start of a story: no faults, and the business has no active subscription. Resolves as `playStep` does. */
export function setScene(stage: Stage, name: StoryName) {
  const { business_uid }: Story = STORIES[name]
  return whyNot(async () => {
    stage.bringBack()
    stage.speedUp()
    await stage.startApp()
    if (['purchased', 'suspended'].includes(stateOf(stage.standing(business_uid))))
      must(stage.perform('cancel', business_uid))
    await stage.ask(business_uid)
    const isClosed = () => stage.of(business_uid).decision?.entitled === false
    if (!(await becomes(isClosed, stage.timeline, LONGEST_MS)))
      throw new Error('The cancellation was not read')
  })
}

/** Acts, and waits for the events that concern the business. Throws if they do not come. */
async function happens(
  { timeline }: Stage,
  businessUid: string,
  act: () => unknown,
  until: StoryStep['until'],
) {
  const before = timeline.all().at(-1)?.id ?? 0
  await act()
  const concerns = ({ id, business_uid = businessUid }: Happening) =>
    id > before && business_uid === businessUid
  if (!(await becomes(() => until(timeline.all().filter(concerns)), timeline, LONGEST_MS)))
    throw new Error(`The step has not ended after ${LONGEST_MS / 1_000} s`)
}

async function whyNot(act: () => Promise<void>): Promise<string | null> {
  try {
    await act()
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
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
