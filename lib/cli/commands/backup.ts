import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE } from '../terminal/exit-codes.js'
import { asLines } from '../terminal/layout.js'

export function addBackup(program: Command, act: Act) {
  program
    .command('backup')
    .summary('copy a SQLite database while the app runs')
    .description(
      'Copy the SQLite database into a new file, also while the app runs. With libsql, or a SQLite older than 3.51.3, ' +
        'this ends with 3 while the app runs: call marketplace.backup(path) in the app. The copy can be used as a store. ' +
        'For PostgreSQL use pg_dump.',
    )
    .argument('<path>', 'a file that does not exist yet', trimmed)
    .addHelpText('after', examples('backup marketplace-backup.db'))
    .action(
      act(async (context, path: string) => {
        const { out } = context
        const marketplace = await context.open()
        await context.record(marketplace, { action: 'backup', about: resolve(path) })
        await marketplace.backup(path)
        const { size } = statSync(path)
        out.result({ path: resolve(path), bytes: size }, () =>
          asLines(`${resolve(path)}: ${Math.ceil(size / 1024)} KiB`),
        )
        return DONE
      }),
    )
}
