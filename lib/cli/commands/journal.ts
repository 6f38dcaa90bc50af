import type { Command } from 'commander'
import type { Act } from '../context.js'
import { addJournalList } from './journal-list.js'
import { addJournalReplay } from './journal-replay.js'
import { addJournalShow } from './journal-show.js'

export function addJournal(program: Command, act: Act) {
  const journal = program
    .command('journal')
    .summary('look at entries of the journal, and hand them over again')
    .description(
      'The journal has each delivery, change and action once, with what became of it. Entries that are dead or retrying ' +
        'are those that a handler failed with.',
    )
  addJournalList(journal, act)
  addJournalShow(journal, act)
  addJournalReplay(journal, act)
}
