import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { postgresStore } from '../../index.js'
import { sqlitePath } from '../../store-option.js'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, Stop, USAGE } from '../terminal/exit-codes.js'

export function addMigrate(program: Command, act: Act) {
  program
    .command('migrate')
    .summary('create or update the tables')
    .description(
      'Create or update the tables of the store, as the app does when it starts. If the role of the app may not create ' +
        'tables, run this command with a role that may.',
    )
    .option(
      '--print-grants <role>',
      'only print the SQL that lets a role use the tables in PostgreSQL',
      trimmed,
    )
    .addHelpText('after', examples('migrate', 'migrate --print-grants app_role | psql "$OWNER_URL"'))
    .action(
      act(async (context, { printGrants: role }: { printGrants?: string }) => {
        const { out } = context
        if (role !== undefined) {
          const sql = grantsOf((await context.options({ isDatabaseOnly: true })).store, role)
          out.result({ sql }, () => sql)
          return DONE
        }
        const { store = 'sqlite:marketplace.db' } = await context.options({ isDatabaseOnly: true })
        const path = typeof store === 'string' ? sqlitePath(store) : undefined
        const created = path !== undefined && !existsSync(path) ? resolve(path) : null
        await context.open({ mayCreate: true })
        out.result(
          { migrated: true, created },
          () => `${created ? `Created the database ${created}. ` : ''}The tables exist and are up to date.`,
        )
        return DONE
      }),
    )
}

function grantsOf(store: unknown, role: string): string {
  const own = store as { grants?: (role: string) => string } | null | undefined
  if (typeof own === 'object' && typeof own?.grants === 'function') return own.grants(role)
  const isAddress = typeof store === 'string' && /^postgres(ql)?:\/\//.test(store)
  if (isAddress) return postgresStore({ connectionString: store }).grants(role)
  throw new Stop(USAGE, 'Cannot print grants: the store is not on PostgreSQL', {
    fix: 'Set MARKETPLACE_STORE to postgres://…, or use postgresStore(…) in the --config file.',
  })
}
