import type { Decision } from '../lib/index.js'

/** What must be so at a point of the life of a subscription. */
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

/** What is wrong, one sentence each; none when all is as it must be. */
export function check(expected: Expected, { decision, report }: Observed): string[] {
  const faults: string[] = []
  if (decision.entitled !== expected.entitled) {
    faults.push(`expected ${words(expected.entitled)}, and it is ${words(decision.entitled)}`)
  }
  if (decision.reason !== expected.reason) {
    faults.push(`expected the reason ${expected.reason}, and it is ${decision.reason}`)
  }
  if (report !== expected.report) {
    faults.push(`expected the report to answer ${expected.report}, and it answered ${report}`)
  }
  return faults
}

function words(entitled: boolean): string {
  return entitled ? 'let in' : 'not let in'
}
