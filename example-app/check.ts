import type { Decision } from '../lib/index.js'

/** The expected answer at a point in the life of a subscription. */
export interface Expected {
  entitled: boolean
  reason: Decision['reason']
  /** The status of the paid page. */
  report: 200 | 402 | 503
}

export interface Observed {
  decision: Pick<Decision, 'entitled' | 'reason'>
  report: number
}

/** The differences, a sentence for each. */
export function check(expected: Expected, { decision, report }: Observed): string[] {
  const faults: string[] = []
  if (decision.entitled !== expected.entitled) {
    faults.push(`expected ${words(expected.entitled)}, got ${words(decision.entitled)}`)
  }
  if (decision.reason !== expected.reason) {
    faults.push(`expected the reason ${expected.reason}, got ${decision.reason}`)
  }
  if (report !== expected.report) {
    faults.push(`expected the report to answer ${expected.report}, got ${report}`)
  }
  return faults
}

function words(entitled: boolean): string {
  return entitled ? 'let in' : 'not let in'
}
