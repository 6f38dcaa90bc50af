import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { typesSeen } from '../support/docs/members.js'

const LIB = join(__dirname, '..', '..', 'lib')
const TYPES = typesSeen(['index.ts', 'testing/index.ts', 'console/index.ts'].map((file) => join(LIB, file)))

describe('the docstrings that an editor shows', () => {
  it('are those of every type that an app can import, and of what these mention', () => {
    const names = TYPES.map(({ name }) => name)
    const called = ['Marketplace', 'JournalMethods', 'MarketplaceOptions', 'SimulatorOptions']
    const answers = ['Decision', 'SubscriptionVerdict', 'Health', 'HealthProblem', 'StoreCounts']
    const stored = ['SubscriptionRecord', 'SubscriptionStatus', 'JournalEntry', 'HistoryItem']
    expect(names).toEqual(expect.arrayContaining([...called, ...answers, ...stored]))
    const membersOf = (type: string) => TYPES.find(({ name }) => name === type)?.members ?? []
    expect(membersOf('Marketplace')).toEqual(
      expect.arrayContaining(['webhooks', 'subscriptions', 'look', 'businesses', 'erase', 'journal']),
    )
    // Members of the arms of a union too.
    expect(membersOf('HistoryItem')).toEqual(expect.arrayContaining(['id', 'gone', 'outcome', 'actor']))
  })

  it.each(TYPES.filter(({ members }) => members.length > 0).map(({ name, bare }) => [name, bare] as const))(
    'exist for every member of %s',
    (_name, bare) => expect(bare).toEqual([]),
  )
})
