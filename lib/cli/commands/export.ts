import { closeSync, fchmodSync, openSync, unlinkSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { BusinessData } from '../../index.js'
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
        const collect = async () => {
          await context.record(marketplace, { action: 'export', businessUid: business })
          return marketplace.businesses.export(business)
        }
        const text = (collected: BusinessData) => jsonText(collected, { indent: 2 })
        const data = file === undefined ? await collect() : await intoNewFile(file, collect, text)
        if (file === undefined) out.result(data, () => text(data))
        else out.result({ file }, () => asLines(`Written to ${file}.`))
        out.note(
          `${plural(data.subscriptions.length, 'subscription')} and ${plural(data.journal.length, 'journal entry', 'journal entries')}.`,
        )
        return DONE
      }),
    )
}

const PRIVATE = 0o600

/** Creates the file, then collects what it gets: an export that cannot be written is not recorded. */
async function intoNewFile<Data>(
  file: string,
  collect: () => Promise<Data>,
  textOf: (data: Data) => string,
): Promise<Data> {
  const opened = created(file)
  try {
    const data = await collect()
    writeFileSync(opened, `${textOf(data)}\n`)
    return data
  } catch (error) {
    unlinkSync(file)
    throw error
  } finally {
    closeSync(opened)
  }
}

function created(file: string): number {
  try {
    const opened = openSync(file, 'wx', PRIVATE)
    // The umask may have taken more.
    fchmodSync(opened, PRIVATE)
    return opened
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'EEXIST' ? 'the file exists already' : (code ?? 'it failed')
    throw new Stop(USAGE, `Cannot write ${file}: ${why}`)
  }
}
