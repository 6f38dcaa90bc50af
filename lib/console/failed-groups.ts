import { addToGroup, type Group } from './attention-groups.js'
import { entriesOf } from './entries.js'
import type { ConsoleMarketplace } from './needs.js'
import { Refusal } from './refusal.js'

/** Limit of examined entries of one status, and how many are read at a time. */
const MAX_EXAMINED = 10_000
const PAGE = 50
/** All requests within this time share one result. */
const FRESH_MS = 3_000

interface Found {
  groups: Map<string, Group>
  isAll: boolean
}

/** The groups of dead and retrying entries, looked up again when they are a few seconds old. */
export function createFailedGroups({
  marketplace,
  now,
}: {
  marketplace: ConsoleMarketplace
  now: () => number
}) {
  let latest: { at: number; result: Promise<Found> } | undefined

  function look(): Promise<Found> {
    if (latest === undefined || now() - latest.at > FRESH_MS) {
      const fresh = { at: now(), result: lookNow() }
      fresh.result.catch(() => {
        if (latest === fresh) latest = undefined
      })
      latest = fresh
    }
    return latest.result
  }

  async function lookNow(): Promise<Found> {
    const groups = new Map<string, Group>()
    let isAll = true
    for (const status of ['dead', 'retrying'] as const) {
      let examined = 0
      for await (const entry of entriesOf(marketplace, { status }, PAGE)) {
        if (examined === MAX_EXAMINED) {
          isAll = false
          break
        }
        addToGroup(groups, status, entry)
        examined++
      }
    }
    return { groups, isAll }
  }

  async function groupOf(key: string): Promise<Group> {
    const group = (await look()).groups.get(key)
    if (group) return group
    throw new Refusal(
      404,
      'group_gone',
      'This group no longer exists: its entries have been handled, or fail with another error now.',
    )
  }

  return {
    look,
    groupOf,
    /** The next look reads the entries again. */
    forget() {
      latest = undefined
    },
  }
}

export type FailedGroups = ReturnType<typeof createFailedGroups>
