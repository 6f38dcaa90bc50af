import type { Command } from 'commander'
import { postgresStore } from '../../index.js'
import { examples, trimmed } from '../command-options.js'
import type { Act } from '../context.js'
import { DONE, Stop, USAGE } from '../exit-codes.js'

export function addMigrate(program: Command, act: Act) {
  program
    .command('migrate')
    .summary('make the tables, or bring them up to date')
    .description(
      'Make the tables of the store, or bring them up to date, as the app itself does when it starts. Run it as a role ' +
        "that may create, where the app's own may not.",
    )
    .option(
      '--print-grants <role>',
      'print the SQL that lets a role use the tables in PostgreSQL, and do nothing',
      trimmed,
    )
    .addHelpText('after', examples('migrate', 'migrate --print-grants app_role | psql "$OWNER_URL"'))
    .action(
      act(async (context, { printGrants: role }: { printGrants?: string }) => {
        const { out } = context
        if (role !== undefined) {
          const sql = grantsOf((await context.options()).store, role)
          out.result({ sql }, () => sql)
          return DONE
        }
        await context.open({ mayCreate: true })
        out.result({ migrated: true }, () => 'The tables are there, and up to date.')
        return DONE
      }),
    )
}

function grantsOf(store: unknown, role: string): string {
  const own = store as { grants?: (role: string) => string } | null | undefined
  if (typeof own === 'object' && typeof own?.grants === 'function') return own.grants(role)
  const isAddress = typeof store === 'string' && /^postgres(ql)?:\/\//.test(store)
  if (isAddress) return postgresStore(store).grants(role)
  throw new Stop(USAGE, 'Only a store on PostgreSQL has grants', {
    mend: 'Set MARKETPLACE_STORE to postgres://…, or give postgresStore(…) in the --config file.',
  })
}
