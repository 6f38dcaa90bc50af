import type { Command } from 'commander'
import type { Act } from '../terminal/context.js'
import { addJournalExport } from './export.js'
import { addJournalList } from './list.js'
import { addJournalReplay } from './replay.js'
import { addJournalShow } from './show.js'

export function addJournal(program: Command, act: Act) {
  const journal = program
    .command('journal')
    .summary('list, show, replay and export journal entries')
    .description(
      'The journal contains each delivery, change and action once, with its outcome. Dead and retrying entries are ' +
        'those whose handlers failed.',
    )
  addJournalList(journal, act)
  addJournalShow(journal, act)
  addJournalReplay(journal, act)
  addJournalExport(journal, act)
}
