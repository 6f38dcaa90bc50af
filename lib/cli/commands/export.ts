import { closeSync, fchmodSync, openSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, Stop, USAGE } from '../terminal/exit-codes.js'
import { asLines, plural } from '../terminal/layout.js'
import { jsonText } from '../terminal/output.js'

export function addExport(program: Command, act: Act) {
  program
    .command('export')
    .summary('print the stored data of a business as JSON')
    .description('Print the stored data of a business as one JSON document, with or without --json.')
    .argument('<business>', 'the uid of the business', trimmed)
    .option('--out <file>', 'write it into a new file that only you can read')
    .addHelpText('after', examples('export business-1', 'export business-1 --out business-1.json'))
    .action(
      act(async (context, business: string, { out: file }: { out?: string }) => {
        const { out } = context
        const marketplace = await context.open()
        await context.record(marketplace, { action: 'export', businessUid: business })
        const data = await marketplace.businesses.export(business)
        const text = jsonText(data, 2)
        if (file === undefined) {
          out.result(data, () => text)
        } else {
          writeNew(file, text)
          out.result({ file }, () => asLines(`Written to ${file}.`))
        }
        out.note(
          `${plural(data.subscriptions.length, 'subscription')} and ${plural(data.journal.length, 'journal entry', 'journal entries')}.`,
        )
        return DONE
      }),
    )
}

const PRIVATE = 0o600

function writeNew(file: string, text: string) {
  try {
    const opened = openSync(file, 'wx', PRIVATE)
    try {
      // The umask may have taken more.
      fchmodSync(opened, PRIVATE)
      writeFileSync(opened, `${text}\n`)
    } finally {
      closeSync(opened)
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'EEXIST' ? 'the file exists already' : (code ?? 'it failed')
    throw new Stop(USAGE, `Cannot write ${file}: ${why}`)
  }
}
