import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import type { Marketplace } from '../../index.js'
import { examples, trimmed } from '../terminal/command-options.js'
import type { Act, Context } from '../terminal/context.js'
import { DONE, INTERRUPTED, Stop, USAGE } from '../terminal/exit-codes.js'
import { plural } from '../terminal/layout.js'

export function addErase(program: Command, act: Act) {
  program
    .command('erase')
    .summary('delete the stored data of a business')
    .description(
      'Delete the stored data of a business. It asks for the uid again. The journal keeps the exports, replays and ' +
        'erasures that people did, with time, person and --reason, and a hash in place of the uid; `history` finds them ' +
        'by the uid. If the business still has the app, its next event stores new data.',
    )
    .argument('<business>', 'the uid of the business', trimmed)
    .option('--yes <uid>', 'the uid again, instead of typing it', trimmed)
    .addHelpText(
      'after',
      examples(
        'erase business-1',
        'erase business-1 --yes business-1 --actor ada \\\n      --reason "request 12"',
      ),
    )
    .action(
      act(async (context, business: string, { yes }: { yes?: string }) => {
        const { out, actor, reason } = context
        const marketplace = await context.open()
        const confirmed = yes ?? (await typedUid(context, () => warningOf(marketplace, business)))
        if (confirmed.trim() !== business)
          throw new Stop(USAGE, 'Nothing was erased: the two uids are not the same')
        const summary = await marketplace.businesses.erase(business, { actor, ...(reason ? { reason } : {}) })
        const { rows, auditUid } = summary
        out.result(
          summary,
          () =>
            `Erased the data of ${business} (${plural(rows, 'row')}). The journal has the erasure as ${auditUid}.`,
        )
        return DONE
      }),
    )
}

const PAGE = 1_000

/** Counts what a page of each list contains: a business may have very many subscriptions that senders made up. */
async function warningOf(marketplace: Marketplace, businessUid: string): Promise<string> {
  const subscriptions = await marketplace.subscriptions.list({ businessUid, limit: PAGE })
  const history = await marketplace.businesses.history(businessUid, { limit: PAGE })
  const entries = new Set(history.flatMap(({ kind, entryId }) => (kind === 'action' ? [] : entryId)))
  const orMore = ({ length }: readonly unknown[]) => (length === PAGE ? ' or more' : '')
  const those = `${plural(subscriptions.length, 'subscription')}${orMore(subscriptions)} of ${businessUid}`
  const named = `${plural(entries.size, 'journal entry', 'journal entries')}${orMore(history)} that name it`
  return `This deletes ${those}, ${named}, and all other entries of these subscriptions. It cannot be undone.`
}

async function typedUid({ stdin, out }: Context, warning: () => Promise<string>): Promise<string> {
  if (stdin.isTTY !== true) throw notConfirmed()
  out.note(await warning())
  const lines = createInterface({ input: stdin, output: process.stderr })
  try {
    return await new Promise((resolve, reject) => {
      lines.once('line', resolve)
      // At the question Ctrl+C is a key, and ends nothing by itself.
      lines.once('SIGINT', () => reject(new Stop(INTERRUPTED, 'Nothing was erased: interrupted')))
      lines.once('close', () => reject(notConfirmed()))
      lines.setPrompt('Type the uid of the business to continue: ')
      lines.prompt()
    })
  } finally {
    lines.close()
  }
}

function notConfirmed(): Stop {
  return new Stop(USAGE, 'Nothing was erased: the erasure was not confirmed', {
    fix: 'Give the uid again: --yes <uid>',
  })
}
