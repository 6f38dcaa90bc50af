import { requireIdentifier } from '../../base/record.js'
import { type Marketplace, MarketplaceError, type TrackedSubscription } from '../../index.js'
import { DONE, type ExitCode, NO } from '../terminal/exit-codes.js'
import { plural } from '../terminal/layout.js'
import type { Customers } from './lines.js'
import type { Reporter } from './report.js'

/** Lines that share a commit. */
const BATCH = 50

interface Given {
  line: number
  subscriptionUid: unknown
  businessUid: unknown
}

/** Requests the read of each line, and does not wait for it. */
export async function trackOnly(
  marketplace: Marketplace,
  customers: Customers,
  { announce, reporter }: { announce: boolean; reporter: Reporter },
): Promise<ExitCode> {
  return eachLine(customers, {
    reporter,
    async resultFor({ subscriptionUid, businessUid }) {
      // Any value of the file: `track` checks it.
      await marketplace.subscriptions.track({ subscriptionUid, businessUid } as TrackedSubscription, {
        announce,
      })
      return 'requested'
    },
    explanation: ({ requested = 0, invalid = 0 }) =>
      `${plural(requested, 'read')} requested${invalid ? `, ${plural(invalid, 'line')} invalid` : ''}. The worker of the app does the reads when it runs.`,
  })
}

/** Checks which lines are valid and which subscriptions are new. Writes nothing. */
export async function dryRun(
  marketplace: Marketplace,
  customers: Customers,
  reporter: Reporter,
): Promise<ExitCode> {
  const seen = new Set<string>()
  return eachLine(customers, {
    reporter,
    async resultFor(line) {
      const uid = requireIdentifier(line.subscriptionUid, 'subscriptionUid')
      requireIdentifier(line.businessUid, 'businessUid')
      return (await marketplace.subscriptions.get(uid)) ? 'known' : 'new'
    },
    // The lookups of a batch end in any order.
    inOrder({ subscriptionUid }, result) {
      if (result !== 'new') return result
      const isRepeated = seen.has(String(subscriptionUid))
      seen.add(String(subscriptionUid))
      return isRepeated ? 'known' : 'new'
    },
    explanation: (counts) =>
      `${counts.new ?? 0} new, ${counts.known ?? 0} known or repeated, ${counts.invalid ?? 0} invalid. Nothing was written.`,
  })
}

async function eachLine(
  customers: Customers,
  options: {
    reporter: Reporter
    resultFor(line: Given): Promise<string>
    /** The result of a line, now that those before it are known. */
    inOrder?(line: Given, result: string): string
    explanation(counts: Record<string, number>): string
  },
): Promise<ExitCode> {
  const { reporter, resultFor, inOrder = (_, result) => result, explanation } = options
  const counts: Record<string, number> = {}

  /** Runs one batch at once, and reports its results in the order of its lines. */
  async function all(batch: readonly Given[]) {
    const found = await Promise.all(batch.map((given) => resultFor(given).then(asResult, asInvalid)))
    batch.forEach((each, i) => {
      const { line, subscriptionUid, businessUid } = each
      const { result: ofLookup, why } = found[i] as Found
      const result = inOrder(each, ofLookup)
      counts[result] = (counts[result] ?? 0) + 1
      reporter.line({
        line,
        subscriptionUid: textOf(subscriptionUid),
        businessUid: textOf(businessUid),
        result,
        why,
      })
      reporter.progress({ invalid: counts.invalid ?? 0 })
    })
  }

  let batch: Given[] = []
  let line = 0
  for await (const each of customers.lines()) {
    batch.push({ line: ++line, ...(each as Omit<Given, 'line'>) })
    if (batch.length < BATCH) continue
    await all(batch)
    batch = []
  }
  await all(batch)
  reporter.summary({ ...counts, explanation: explanation(counts) })
  return counts.invalid ? NO : DONE
}

interface Found {
  result: string
  why: string | null
}

const asResult = (result: string): Found => ({ result, why: null })

function asInvalid(error: unknown): Found {
  if (error instanceof MarketplaceError && error.code === 'argument_invalid')
    return { result: 'invalid', why: error.message }
  throw error
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
}
