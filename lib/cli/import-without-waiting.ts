import { type Marketplace, MarketplaceError } from '../index.js'
import { DONE, type ExitCode, NO } from './exit-codes.js'
import type { Customers } from './import-file.js'
import type { Reporter } from './import-report.js'

/** So many share a commit. */
const BATCH = 50

interface Given {
  line: number
  subscription_uid: unknown
  business_uid: unknown
}

/** Asks for the read of each line, and for nothing else. */
export async function trackOnly(
  marketplace: Marketplace,
  customers: Customers,
  { announce, reporter }: { announce: boolean; reporter: Reporter },
): Promise<ExitCode> {
  return eachLine(customers, {
    reporter,
    async resultFor({ subscription_uid, business_uid }) {
      await marketplace.track({ subscription_uid, business_uid } as never, { announce })
      return 'asked'
    },
    explanation: ({ asked = 0, invalid = 0 }) =>
      `${asked} reads are asked for and kept${invalid ? `, ${invalid} lines are invalid` : ''}. The app reads them when it runs.`,
  })
}

/** Only looks: which lines are valid, and which subscriptions are new here. */
export async function dryRun(
  marketplace: Marketplace,
  customers: Customers,
  reporter: Reporter,
): Promise<ExitCode> {
  const seen = new Set<string>()
  return eachLine(customers, {
    reporter,
    async resultFor({ subscription_uid, business_uid }) {
      const uid = subscription_uid as string
      // A lookup by the business checks its uid by the rule of the package; a filter that is undefined would not be one.
      await marketplace.subscriptions.list({ businessUid: (business_uid ?? '') as string, limit: 1 })
      const known = await marketplace.subscriptions.get(uid)
      const isAgain = seen.has(String(uid))
      seen.add(String(uid))
      return isAgain || known?.record ? 'known' : 'new'
    },
    explanation: (counts) =>
      `${counts.new ?? 0} are new, ${counts.known ?? 0} are known or named twice, ${counts.invalid ?? 0} lines are invalid. Nothing was written.`,
  })
}

async function eachLine(
  customers: Customers,
  options: {
    reporter: Reporter
    resultFor(line: Given): Promise<string>
    explanation(counts: Record<string, number>): string
  },
): Promise<ExitCode> {
  const { reporter, resultFor, explanation } = options
  const counts: Record<string, number> = {}
  let done = 0

  /** One batch at once, its results in the order of its lines. */
  async function all(batch: readonly Given[]) {
    const found = await Promise.all(batch.map((given) => resultFor(given).then(asResult, asInvalid)))
    batch.forEach(({ line, subscription_uid, business_uid }, i) => {
      const { result, why } = found[i] as Found
      counts[result] = (counts[result] ?? 0) + 1
      reporter.line({
        line,
        subscription_uid: textOf(subscription_uid),
        business_uid: textOf(business_uid),
        result,
        why,
      })
      reporter.progress({ done: ++done, invalid: counts.invalid ?? 0 })
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
