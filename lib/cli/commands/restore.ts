import { resolve } from 'node:path'
import type { Command } from 'commander'
import { restoreBackup } from '../../index.js'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, FIXES, stopFor } from '../terminal/exit-codes.js'
import { asLines } from '../terminal/layout.js'

const PROGRESS = {
  copying: 'copying the backup',
  checking: 'checking the copy',
  preparing: 'making a read of every subscription due',
  replacing: 'replacing the database',
} as const

export function addRestore(program: Command, act: Act) {
  program
    .command('restore')
    .summary('replace the SQLite database by a backup')
    .description(
      'Put a copy of a backup in the place of the SQLite database. Stop the app first: this refuses while a process uses ' +
        'the database. The former database gets another name, and the backup stays as it is. When the app runs again, it ' +
        'reads every subscription, about four a second, and all within ten minutes. For PostgreSQL use pg_restore, then `refresh --all`.',
    )
    .argument('<backup>', 'a file that `backup` has made', trimmed)
    .addHelpText('after', examples('restore marketplace-backup.db'))
    .action(
      act(async (context, backup: string) => {
        const { out } = context
        const options = await context.options()
        // Faults of the settings are reported as by the other commands.
        await context.create({ worker: false, store: 'sqlite::memory:' })
        const restored = await restoreBackup(options, backup, {
          onStep: (step) => out.progress(`${PROGRESS[step]} …`),
        }).catch((error) => {
          throw stopFor(error, {
            ...FIXES,
            store_in_use: 'Stop every process of the app, run this command, and start the app again.',
          })
        })
        try {
          const marketplace = await context.open()
          await context.record(marketplace, { action: 'restore', about: resolve(backup) })
        } finally {
          // Also after an error: only this says where the former database is.
          const { path, formerPath, subscriptions } = restored
          out.result({ backup: resolve(backup), ...restored }, () =>
            asLines([
              `${path} now has the content of ${resolve(backup)}.`,
              formerPath
                ? `The former database is ${formerPath}: delete it when you no longer need it.`
                : 'There was no database before.',
              `Start the app. It reads ${subscriptions} subscriptions again, about four a second and all within ten minutes, and handles again what was pending in the backup.`,
            ]),
          )
        }
        return DONE
      }),
    )
}
