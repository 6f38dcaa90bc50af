import { stateOf } from './actions.js'
import { nameOf } from './businesses.js'
import type { ButtonName } from './code.js'
import { becomes } from './play.js'
import type { Stage } from './stage.js'
import type { Happening } from './timeline.js'

/** A walk through the package: each step is one press of a button, and what comes of it. */
export interface Story {
  title: string
  summary: string
  business_uid: string
  steps: readonly StoryStep[]
  /** What the story has shown. */
  end: string
}

interface StoryStep {
  /** The words on the button. */
  press: string
  /** Whose code runs. */
  button: ButtonName
  /** What is about to happen. */
  before: string
  /** What has happened. */
  after: string
  act(stage: Stage, businessUid: string): unknown
  /** What must have happened for the step to be over, of what happened since it began. */
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
    summary: 'A webhook comes in, the subscription is read back, the report opens.',
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
          'The webhook was written to disk, then acknowledged. It only says that something changed; the subscription was read back, and what it showed is the answer.',
        act: (stage, businessUid) => must(stage.perform('buy', businessUid)),
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
        before: 'Yoga Studio Mitte is going to be a customer.',
        after: 'It is let in.',
        act: (stage, businessUid) => must(stage.perform('buy', businessUid)),
        until: decided('Let in'),
      },
      {
        press: 'Miss a payment',
        button: 'failPayment',
        before: 'A month later its bank refuses the payment. The platform suspends the subscription.',
        after: 'The subscription was read back as suspended. The studio is not let in any more.',
        act: (stage, businessUid) => must(stage.perform('failPayment', businessUid)),
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
        act: (stage, businessUid) => must(stage.perform('confirmPayment', businessUid)),
        until: decided('Let in'),
      },
    ],
    end: 'Nobody had to look at a list: the answer follows the platform.',
  },
  dies: {
    title: 'The app dies',
    summary: 'kill -9 while a webhook is on its way, and nothing is lost.',
    business_uid: 'cafe-morgenrot',
    steps: [
      {
        press: 'Buy, then kill -9',
        button: 'buyAndKill',
        before:
          'Café Morgenrot pays. Its webhook is on its way through the app: acknowledged, and not read back yet. That moment the app is killed.',
        after:
          'The app is gone, and the platform believes that it knows. All that is left of the purchase is the line on disk.',
        act: (stage, businessUid) => stage.killAfterTheAcknowledgement('buy', businessUid),
        until: (since) => since.some(({ kind, text }) => kind === 'stage' && text.includes('SIGKILL')),
      },
      {
        press: 'Miss a payment, then pay',
        button: 'missAndPay',
        before:
          'Meanwhile the café misses a payment, and pays it. The demo drops both webhooks, so that no second try can help.',
        after: 'Both are lost for good. Nobody has to find them: the next read shows what is true.',
        act: missAndPay,
        until: (since) =>
          since.filter(({ kind, tone }) => kind === 'delivery' && tone === 'bad').length === 2,
      },
      {
        press: 'Start the app',
        button: 'startApp',
        before: 'The app starts again, with the same database.',
        after:
          'The line was still on disk: the subscription was read back, as it is by now, and the café is let in.',
        act: (stage) => stage.startApp(),
        until: decided('Let in'),
      },
    ],
    end: 'What was acknowledged is on disk, and what was missed shows in the next read. Nothing is lost.',
  },
} as const satisfies Record<string, Story>

export type StoryName = keyof typeof STORIES

export function isStoryName(name: string): name is StoryName {
  return Object.hasOwn(STORIES, name)
}

/** Plays a step to its end. Resolves to null, or to why it did not come to its end. */
export async function playStep(stage: Stage, name: StoryName, number: number, timeoutMs = 20_000) {
  const story: Story = STORIES[name]
  const step = story.steps[number]
  if (!step) return 'There is no such step'
  const { timeline } = stage
  try {
    if (number === 0) await setScene(stage, story.business_uid, timeoutMs)
    const before = timeline.all().at(-1)?.id ?? 0
    await step.act(stage, story.business_uid)
    const isOver = () => step.until(timeline.all().filter(({ id }) => id > before))
    return (await becomes(isOver, timeline, timeoutMs)) ? null : `Not over after ${timeoutMs / 1_000} s`
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** As every story begins: all is well, and the business has no subscription that counts. */
async function setScene(stage: Stage, businessUid: string, timeoutMs: number) {
  stage.bringBack()
  stage.speedUp()
  await stage.startApp()
  if (!['purchased', 'suspended'].includes(stateOf(stage.standing(businessUid)))) return
  const before = stage.timeline.all().at(-1)?.id ?? 0
  must(stage.perform('cancel', businessUid))
  const isOver = () =>
    stage.timeline
      .all()
      .some(({ id, kind, text }) => id > before && kind === 'change' && text.endsWith('→ canceled'))
  if (!(await becomes(isOver, stage.timeline, timeoutMs))) throw new Error('The cancellation was not read')
}

function decided(answer: string) {
  return (since: readonly Happening[]) =>
    since.some(({ kind, text }) => kind === 'decision' && text.startsWith(`${answer}:`))
}

function visited(status: number) {
  return (since: readonly Happening[]) =>
    since.some(({ kind, text }) => kind === 'visit' && text.includes(` ${status} `))
}

function missAndPay({ simulator, timeline, perform }: Stage, businessUid: string) {
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
