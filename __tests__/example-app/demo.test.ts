import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { watchDecisions } from '../../example-app/demo/decision-watcher.js'
import { createFrames } from '../../example-app/demo/frames.js'
import {
  check,
  type Expected,
  exitCodeOf,
  type Observable,
  type Observed,
  play,
  type Step,
} from '../../example-app/demo/run-scenario.js'
import { createTimeline } from '../../example-app/demo/timeline.js'
import type { Decision } from '../../lib/index.js'

const PROJECT = resolve(__dirname, '..', '..')
const LET_IN: Expected = { entitled: true, reason: 'purchased', report: 200 }
const OBSERVED_LET_IN: Observed = { decision: { entitled: true, reason: 'purchased' }, report: 200 }

describe('npm run demo -- --once', () => {
  let temporary: string

  beforeEach(async () => {
    temporary = await mkdtemp(join(tmpdir(), 'demo-'))
  })
  afterEach(() => rm(temporary, { recursive: true, force: true }))

  it('plays a story with a kill, finds every decision correct, exits with 0 and leaves nothing behind', async () => {
    const { code, lines } = await runOnce(temporary)
    expect(lines.at(-1)).toMatch(/^(\d+) of \1 decisions were right$/)
    expect(code).toBe(0)

    // On a busy machine the read begins before the kill, and its requests are listed between the two.
    const killed = lines.findIndex((line) => /SIGKILL/.test(line))
    const before = lines.slice(0, killed).reverse()
    const acknowledged = before.findIndex((line) => /acknowledged/.test(line))
    expect(acknowledged).toBeGreaterThan(-1)
    expect(before.slice(0, acknowledged).filter((line) => /Subscription read/.test(line))).toEqual([])
    expect(lines.slice(killed).some((line) => /Subscription read/.test(line))).toBe(true)
    // The columns are aligned: a time, a kind and a text. There are no colours, because the output is not a terminal.
    expect(
      lines.filter((line) => /^ +\d+\.\d{3} {2}(decision|change|read ←|delivery →) /.test(line)).length,
    ).toBeGreaterThan(40)
    expect(lines.join('')).not.toContain('\u001b')
    expect((await readdir(temporary)).filter((name) => name.startsWith('reports-demo-'))).toEqual([])
  }, 240_000)
})

describe('a visit in the demo', () => {
  it('is repeated until the gate and the answer agree, and stands below the answer', async () => {
    const timeline = createTimeline()
    const replies = [402, 200]
    const decision = {
      business_uid: 'bakery-lindt',
      entitled: true,
      known: true,
      reason: 'purchased',
      subscriptions: [],
    }
    const watcher = watchDecisions(
      {
        timeline,
        app: { state: () => 'running' },
        decision: async (business_uid) => ({ ...decision, business_uid }) as unknown as Decision,
        report: async () => ({ status: replies.shift() ?? 0, body: null }),
      },
      () => {},
    )
    expect(await watcher.visit('bakery-lindt')).toEqual({ status: 200, body: null })
    watcher.close()
    const lines = timeline.all().filter(({ business_uid }) => business_uid === 'bakery-lindt')
    expect(lines.map(({ text }) => text)).toEqual([
      'Let in: purchased',
      'Bakery Lindt opens the report: 200 OK',
    ])
  })
})

describe('the frames of the demo', () => {
  it('have the state after the event: of an action when it is performed, of a change when the app was asked', async () => {
    const timeline = createTimeline()
    const shown: unknown[] = []
    let state = 'before'
    async function ask() {
      await setImmediate()
      state = 'asked'
    }
    const frames = createFrames({
      timeline,
      state: () => state,
      prepare: ({ kind }) => (kind === 'change' ? ask() : undefined),
      onFrame: ({ happening, state }) => shown.push([happening?.text, state]),
    })
    timeline.begin({ kind: 'platform', text: 'buys' })
    state = 'bought'
    await setImmediate()
    timeline.add({ kind: 'change', text: 'changed' })
    await setImmediate()
    await setImmediate()
    frames.close()
    expect(shown).toEqual([
      ['buys', 'bought'],
      ['changed', 'asked'],
    ])
    expect(frames.begin().past.map(({ text }) => text)).toEqual(['buys', 'changed'])
  })
})

describe('the check of a decision', () => {
  it('finds no difference when all is as expected', () => {
    expect(check(LET_IN, OBSERVED_LET_IN)).toEqual([])
  })

  it('names each difference', () => {
    expect(check({ entitled: false, reason: 'not_purchased', report: 402 }, OBSERVED_LET_IN)).toEqual([
      'expected not let in, got let in',
      'expected the reason not_purchased, got purchased',
      'expected the report to answer 402, got 200',
    ])
  })
})

describe('a play', () => {
  it('ends with 0 when every decision is right', async () => {
    expect(exitCodeOf(await playWith([step({}), step({})]))).toBe(0)
  })

  it('ends with 1 when one expectation is wrong, and names it', async () => {
    const verdicts = await playWith([step({}), step({ expect: { ...LET_IN, report: 402 } }), step({})])
    expect(exitCodeOf(verdicts)).toBe(1)
    expect(verdicts.map(({ faults }) => faults)).toEqual([
      [],
      ['expected the report to answer 402, got 200'],
      [],
    ])
  })

  it('ends with 1 when a step fails or never ends, or when nothing was played', async () => {
    const act = () => {
      throw new Error('no platform')
    }
    expect(await playWith([step({ act })])).toEqual([{ title: 'a step', faults: ['no platform'] }])
    const endless = await playWith([step({ until: () => false })])
    expect(endless).toEqual([{ title: 'a step', faults: ['the step has not ended after 0.02 s'] }])
    expect([exitCodeOf(endless), exitCodeOf([])]).toEqual([1, 1])
  })
})

/** Runs the demo in a process. Returns its lines and its exit code. */
async function runOnce(temporary: string): Promise<{ code: number | null; lines: string[] }> {
  const demo = spawn(process.execPath, ['--import', 'tsx', 'example-app/demo/main.ts', '--once'], {
    cwd: PROJECT,
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  demo.stdout.on('data', (chunk) => {
    printed += chunk
  })
  const [code] = await once(demo, 'close')
  return { code, lines: printed.split('\n').filter(Boolean) }
}

function step(given: Partial<Step>): Step {
  return { title: 'a step', act: () => {}, expect: LET_IN, ...given }
}

/** Plays where every business may use the app. */
function playWith(steps: Step[]) {
  const demo: Observable = {
    happenings: () => [],
    listen: () => () => {},
    observe: async () => OBSERVED_LET_IN,
  }
  return play({ steps, demo, stepTimeoutMs: 20, onStep: () => {}, onVerdict: () => {} })
}
