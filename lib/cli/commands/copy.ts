import type { Command } from 'commander'
import { EXPECTED_ADDRESS } from '../../environment.js'
import { copyStore, type PostgresStore, postgresStore } from '../../index.js'
import { storeFaults } from '../../store-option.js'
import { examples, trimmed } from '../terminal/command-options.js'
import { type Act, reasonWith } from '../terminal/context.js'
import { DONE, FIXES, Stop, stopFor, USAGE } from '../terminal/exit-codes.js'
import { asLines, plural } from '../terminal/layout.js'
import { nameOf, passwordsOf } from '../terminal/settings.js'

interface CopyOptions {
  fromSchema?: string
  toSchema?: string
}

export function addCopy(program: Command, act: Act) {
  program
    .command('copy')
    .summary('copy a database into an empty one, also from SQLite to PostgreSQL')
    .description(
      'Copy everything that a database contains into an empty one: subscriptions, the journal, and what handlers have not ' +
        'finished. Both are addresses such as MARKETPLACE_STORE has, on either database. Stop the app first: this refuses ' +
        'while a process uses one of them. The first database stays as it is. The second has everything or nothing: until ' +
        'the copy has ended, no app opens it, and a copy that was interrupted is repeated.',
    )
    .argument('<from>', 'the database of the app: sqlite:<path> or postgres://…', trimmed)
    .argument('<to>', 'an empty database, or a SQLite file that does not exist', trimmed)
    .option('--from-schema <name>', 'the schema of the first, on PostgreSQL', trimmed)
    .option('--to-schema <name>', 'the schema of the second, on PostgreSQL', trimmed)
    .addHelpText(
      'after',
      examples(
        'copy sqlite:marketplace.db postgres://app@db/app',
        'copy postgres://app@db/app sqlite:marketplace.db',
      ),
    )
    .action(
      act(async ({ out, actor, reason }, from: string, to: string, given: CopyOptions) => {
        out.hide([...passwordsOf(from), ...passwordsOf(to)])
        const [source, target] = [nameOf(from, given.fromSchema), nameOf(to, given.toSchema)]
        const summary = await copyStore(
          storeOf('source', from, given.fromSchema),
          storeOf('target', to, given.toSchema),
          {
            actor,
            reason: reasonWith(reason, `from ${source}`),
            onProgress: ({ done, total }) => out.progress(`copying ${done} of ${total} rows …`),
          },
        ).catch((error) => {
          throw stopFor(error, { ...FIXES, ...FIXES_OF_COPY })
        })
        const { subscriptions, entries } = summary
        const { pending, unhandled, done, dead } = entries
        const all = pending + unhandled + done + dead
        out.result({ from: source, to: target, ...summary }, () =>
          asLines([
            `${target} has everything of ${source}: ${plural(subscriptions, 'subscription')}, and ` +
              `${plural(all, 'entry', 'entries')} of the journal (${pending} pending, ${unhandled} unhandled, ${done} done, ${dead} dead). Both were counted.`,
            `Set MARKETPLACE_STORE to ${target}, and start the app: it goes on with what is pending.`,
            `Do not start the app on ${source} again: it would handle the same entries a second time. Delete it when you no longer need it.`,
          ]),
        )
        return DONE
      }),
    )
}

const FIXES_OF_COPY = {
  store_in_use: 'Stop every process of the app, run this command, and start the app on the new database.',
  store_unavailable: 'Check the two addresses, and that both databases run and accept this user.',
}

function storeOf(
  which: 'source' | 'target',
  address: string,
  schema: string | undefined,
): string | PostgresStore {
  if (storeFaults(address).length > 0)
    throw new Stop(USAGE, `Cannot copy the store: the ${which}: ${EXPECTED_ADDRESS}`, {
      fix: 'See marketplace-webhooks copy --help.',
      code: 'argument_invalid',
    })
  if (schema === undefined) return address
  if (address.startsWith('sqlite:'))
    throw new Stop(USAGE, 'Only a database on PostgreSQL has a schema', {
      fix: 'See marketplace-webhooks copy --help.',
    })
  return postgresStore({ connectionString: address, schema })
}
