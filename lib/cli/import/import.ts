import type { Command } from 'commander'
import type { ImportSummary, Marketplace } from '../../index.js'
import { examples, trimmed, wholeNumber } from '../terminal/command-options.js'
import type { Act, Context } from '../terminal/context.js'
import { DONE, type ExitCode, INTERRUPTED, NO, UNAVAILABLE } from '../terminal/exit-codes.js'
import { type Customers, openCustomers } from './lines.js'
import { createReporter, type Reporter } from './report.js'
import { dryRun, trackOnly } from './without-waiting.js'

interface ImportOptions {
  quiet?: true
  dryRun?: true
  wait: number | false
}

export function addImport(program: Command, act: Act) {
  program
    .command('import')
    .summary('add many subscriptions from a file')
    .description(
      'Add many subscriptions from a CSV file with the columns subscription_uid and business_uid, or from a JSON Lines ' +
        'file with these fields; - is the standard input. The worker of the running app reads them. If the import ends ' +
        'early, run it again: it skips lines that are already read. With --json, one result for each line, then the ' +
        'summary.',
    )
    .argument('<file>', 'a .csv or .jsonl file, or -', trimmed)
    .option('--quiet', 'do not call handlers for the changes that the first reads find')
    .option('--dry-run', 'only check the lines, and show which are new')
    .option('--wait <seconds>', 'end after this time without a finished read', wholeNumber, 120)
    .option('--no-wait', 'only request the reads: a worker does them when the app runs')
    .addHelpText(
      'after',
      examples(
        'import customers.csv --dry-run',
        'import customers.csv --quiet',
        'import - < customers.jsonl',
      ),
    )
    .action(
      act(async (context, file: string, given: ImportOptions) => {
        const { out } = context
        const customers = await openCustomers(file, context.stdin)
        const marketplace = await context.open()
        const reporter = createReporter(out, customers)
        if (given.dryRun) return dryRun(marketplace, customers, reporter)
        await context.record(marketplace, { action: 'import', about: file })
        const announce = !given.quiet
        if (given.wait === false) return trackOnly(marketplace, customers, { announce, reporter })
        return importAll(context, { marketplace, customers, reporter, announce, waitMs: given.wait * 1_000 })
      }),
    )
}

async function importAll(
  { out }: Context,
  options: {
    marketplace: Marketplace
    customers: Customers
    reporter: Reporter
    announce: boolean
    waitMs: number
  },
): Promise<ExitCode> {
  const { marketplace, customers, reporter, announce, waitMs } = options
  const abort = new AbortController()
  const stop = () => abort.abort()
  for (const signal of SIGNALS) process.once(signal, stop)
  const unanswered = setTimeout(
    () => out.note(`No read is finished so far. Check that the app runs with its worker on. ${STOP_NOTE}`),
    NOTE_AFTER_MS,
  )
  try {
    const summary = await marketplace.subscriptions.import(customers.lines(), {
      announce,
      signal: abort.signal,
      answerTimeoutMs: Math.max(1, waitMs),
      onProgress(progress, line) {
        clearTimeout(unanswered)
        reporter.line(line)
        reporter.progress(progress)
      },
    })
    reporter.summary(summary)
    if (summary.ended === 'unanswered')
      out.note(
        `It has requested nothing after line ${reporter.furthest()} of the file. ` +
          'Check that the app runs with its worker on. If it cannot run beside this program, use --no-wait and start it later.',
      )
    return exitCodeFor(summary)
  } finally {
    clearTimeout(unanswered)
    for (const signal of SIGNALS) process.removeListener(signal, stop)
  }
}

const NOTE_AFTER_MS = 3_000
const STOP_NOTE = 'Ctrl+C ends the import; the requested reads remain.'
const SIGNALS = ['SIGINT', 'SIGTERM'] as const

function exitCodeFor({ ended, pending, done, read }: ImportSummary): ExitCode {
  if (ended === 'aborted') return INTERRUPTED
  if (ended === 'unanswered' || pending > 0) return UNAVAILABLE
  return read === done ? DONE : NO
}
