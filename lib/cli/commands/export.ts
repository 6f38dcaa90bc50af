import { closeSync, unlinkSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE } from '../terminal/exit-codes.js'
import { createFile } from '../terminal/files.js'
import { asLines } from '../terminal/layout.js'
import { printableJson } from '../terminal/output.js'

export function addExport(program: Command, act: Act) {
  program
    .command('export')
    .summary('print the stored data of a business as JSON')
    .description('Print the stored data of a business as one JSON document, with or without --json.')
    .argument('<business>', 'the uid of the business', trimmed)
    .option('--out <file>', 'write it into a new file that only you can read', trimmed)
    .addHelpText('after', examples('export business-1', 'export business-1 --out business-1.json'))
    .action(
      act(async (context, business: string, { out: file }: { out?: string }) => {
        const { out } = context
        const marketplace = await context.open()
        async function each(write: (text: string) => void, reader?: AbortSignal) {
          await context.record(marketplace, { action: 'export', businessUid: business })
          for await (const piece of marketplace.businesses.exportText(business)) {
            if (reader?.aborted) return
            write(printableJson(piece))
          }
        }
        if (file === undefined) {
          // With --json a result is one line. In JSON only the layout has ends of lines.
          await each((text) => out.part(out.isJson ? text.replaceAll('\n', '') : text), out.readerGone)
          if (out.isJson) out.part('\n')
        } else {
          await intoNewFile(file, each)
          out.result({ file }, () => asLines(`Written to ${file}.`))
        }
        return DONE
      }),
    )
}

/** Creates the file, then writes its parts: an export that cannot be written is not recorded. */
async function intoNewFile(file: string, each: (write: (text: string) => void) => Promise<void>) {
  const opened = createFile(file)
  try {
    await each((text) => writeFileSync(opened, text))
  } catch (error) {
    unlinkSync(file)
    throw error
  } finally {
    closeSync(opened)
  }
}
