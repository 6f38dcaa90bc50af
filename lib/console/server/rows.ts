import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type Decision,
  failureInWords,
  type HealthProblem,
  type HistoryItem,
  type JournalEntry,
  type Marketplace,
  PROBLEMS,
  REASONS,
  type SubscriptionStatus,
} from '../../index.js'
import type { Person } from '../protocol/roles.js'
import type { EntryDetail, EntryRow, SubscriptionRow } from '../protocol/shapes.js'
import {
  errorClassOf,
  type IsShown,
  isKnownEventName,
  isKnownName,
  maskedRecord,
  shapeOf,
} from './masking.js'

/**
 * What a person may see. A text that code of the app or a library wrote may quote anything, so support never gets it: of an
 * error only the class, by which and by the id of the entry an operator finds the text.
 */
export function rowsFor({ role }: Person) {
  const seesAll = role === 'operator'
  const everyName: IsShown = () => true

  function entryRow(entry: JournalEntry): EntryRow {
    const { id, kind, name, status, business_uid, subscription_uid, attempts, receivedAt, dueAt } = entry
    const row = { id, kind, name, status, business_uid, subscription_uid, attempts, receivedAt, dueAt }
    return { ...row, cause: entry.cause, error: errorOf(entry) }
  }

  function errorOf<Text extends string | null>({ error }: { error: Text }): Text | string {
    return error === null || seesAll ? error : errorClassOf(error)
  }

  /** An issue is a sentence of a schema, perhaps of the app, which quotes received names and values. */
  function issuesOf<Issues extends string[] | null>({ issues }: { issues: Issues }): Issues | string[] {
    if (issues === null || issues.length === 0 || seesAll) return issues
    const count = issues.length === 1 ? '1 issue' : `${issues.length} issues`
    return [`${count}. An operator finds the text by the id of the entry.`]
  }

  return {
    entryRow,
    errorOf,
    issuesOf,
    isNameShown: seesAll ? everyName : isKnownName,
    isEventNameShown: seesAll ? everyName : isKnownEventName,

    entryDetail(entry: JournalEntry): EntryDetail {
      // An action contains the name and reason of a person, and no data of a buyer.
      const isOpen = seesAll || entry.kind === 'action'
      return {
        ...entryRow(entry),
        issues: issuesOf(entry),
        stack: seesAll ? entry.stack : null,
        payload: isOpen ? entry.payload : shapeOf(entry.payload, isKnownName),
        isMasked: !isOpen,
      }
    },

    subscriptionRow(status: SubscriptionStatus): SubscriptionRow {
      const { record, failure } = status
      return {
        ...status,
        record: record === null || seesAll ? record : maskedRecord(record),
        trouble: failure === null ? null : failureInWords(failure),
      }
    },

    historyItem(item: HistoryItem): HistoryItem {
      return item.kind === 'handled' ? { ...item, error: errorOf(item) } : item
    },

    /** The explanation quotes what the app's own rule threw. */
    decisionShown(decision: Decision): Decision {
      const { subscriptions, reason } = decision
      if (seesAll || subscriptions.every(({ ruleFailure }) => ruleFailure === undefined)) return decision
      return {
        ...decision,
        explanation: REASONS[reason].meaning,
        subscriptions: subscriptions.map(({ ruleFailure: _ruleFailure, ...verdict }) => verdict),
      }
    },

    problemRow(problem: HealthProblem): HealthProblem {
      return seesAll || !quotes(problem.code)
        ? problem
        : { ...problem, message: PROBLEMS[problem.code].means }
    },
  }
}

/** The problems whose message quotes an error of the database. */
const QUOTING: ReadonlySet<HealthProblem['code']> = new Set([
  'store_not_open',
  'store_not_answering',
  'store_write_failed',
])

/** Whether the message of a problem quotes an error, or something that was received. */
function quotes(code: HealthProblem['code']): boolean {
  return QUOTING.has(code) || 'quotes' in PROBLEMS[code]
}

/** A row for each of the entries that still exist. One at a time is read, because a payload may have 1 MB. */
export async function rowsOf<Row>(
  marketplace: ConsoleMarketplace,
  ids: readonly string[],
  rowOf: (entry: JournalEntry) => Row,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const id of ids) {
    const entry = await marketplace.journal.get(id)
    if (entry) rows.push(rowOf(entry))
    await nextTurn()
  }
  return rows
}

/** The public methods of a marketplace that the console calls. */
export type ConsoleMarketplace = Pick<
  Marketplace,
  'explain' | 'subscriptions' | 'businesses' | 'journal' | 'webhooks' | 'health' | 'readiness'
>
