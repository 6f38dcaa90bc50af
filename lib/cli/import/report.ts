import type { ImportSummary } from '../../index.js'
import { oneLine } from '../terminal/layout.js'
import type { Output } from '../terminal/output.js'
import type { Customers } from './lines.js'

/** Shows the results of an import. */
export interface Reporter {
  /** Shows a line with its result. A person sees only the lines that need attention. */
  line(line: Omit<ImportSummary['notRead'][number], 'result'> & { result: string }): void
  progress(progress: Partial<ImportSummary>): void
  summary(summary: Partial<ImportSummary> & { explanation: string }): void
  /** The number of the furthest line with a result. */
  furthest(): number
}

/** Shows lines by their number in the file, also in the progress: that of the furthest line with a result. */
export function createReporter(out: Output, customers: Customers): Reporter {
  const began = Date.now()
  let furthest = 0
  return {
    line(line) {
      const { number, fault } = customers.placeOf(line.line)
      furthest = Math.max(furthest, number)
      const { subscriptionUid: subscription_uid, businessUid: business_uid, result, why } = line
      // The names of the columns, so that the lines can be imported again.
      const shown = { line: number, subscription_uid, business_uid, result, why: fault ?? byColumn(why) }
      if (out.isJson) return out.result(shown, () => '')
      if (QUIET_RESULTS.includes(result)) return
      const uids = [subscription_uid, business_uid].filter(Boolean).join(' of ')
      out.result(shown, () =>
        oneLine(`line ${number}: ${result}${uids ? `: ${uids}` : ''}${shown.why ? `: ${shown.why}` : ''}`),
      )
    },
    progress({ read = 0, missing = 0, refused = 0, invalid = 0 }) {
      const seconds = Math.max(1, Math.round((Date.now() - began) / 1_000))
      const share = customers.readShare()
      out.progress(
        `line ${furthest}${share === undefined ? '' : ` (${Math.floor(share * 100)} % of the file)`}: ${read} read, ` +
          `${missing} missing, ${refused} refused, ${invalid} invalid; ${seconds} s`,
      )
    },
    summary(summary) {
      const { notRead: _, ...counts } = summary
      out.result({ summary: counts }, () => {
        const { read = 0, missing = 0, refused = 0, invalid = 0, pending = 0 } = summary
        const numbers =
          'read' in summary
            ? `${read} read, ${missing} missing, ${refused} refused, ${invalid} invalid, ${pending} pending. `
            : ''
        return `${numbers}${summary.explanation}`
      })
    },
    furthest: () => furthest,
  }
}

/** A fault with the names of the columns instead of those of the fields. */
function byColumn(why: string | null): string | null {
  return why?.replace('subscriptionUid', 'subscription_uid').replace('businessUid', 'business_uid') ?? null
}

const QUIET_RESULTS = ['read', 'known', 'new', 'requested']
