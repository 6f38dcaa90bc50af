/** The source of an event: an action on the platform, a delivery, a call to the platform, the app, or the demo itself. */
export type Kind =
  | 'platform'
  | 'delivery'
  | 'token'
  | 'read'
  | 'change'
  | 'event'
  | 'decision'
  | 'visit'
  | 'demo'

/** An event of the timeline. */
export interface Happening {
  /** Counts from 1. */
  id: number
  /** The id of the action that caused it; for an action, its own id. */
  cause: number
  /** Milliseconds since 1970. */
  at: number
  kind: Kind
  /** The business that it concerns; all if missing. */
  business_uid?: string
  text: string
  tone: 'plain' | 'good' | 'bad'
}

type Given = Omit<Happening, 'id' | 'cause' | 'at' | 'tone'> & { tone?: Happening['tone'] }

/** The newest events, in order. */
export interface Timeline {
  /** Adds an action of a person. It counts as the cause of later events of the same business, or of all. */
  begin(given: Given): void
  /** The same for several actions of one button. The event names all of them, so they add none of their own. */
  asOne(given: Given, act: () => void): void
  /** Adds an event. Its cause is the newest action that concerns its business. */
  add(given: Given): void
  /** Adds an event that has no cause and causes nothing. */
  addAlone(given: Given): void
  all(): readonly Happening[]
  /** Returns a function that removes the listener. */
  listen(listener: (happening: Happening) => void): () => void
}

export function createTimeline(keep = 500): Timeline {
  const happenings: Happening[] = []
  const listeners = new Set<(happening: Happening) => void>()
  /** The newest action for each business; the key undefined is for actions that concern all. */
  const causes = new Map<string | undefined, number>()
  let count = 0
  let isOne = false

  function write(given: Given, cause: number) {
    const happening: Happening = { tone: 'plain', ...given, id: count, cause, at: Date.now() }
    happenings.push(happening)
    if (happenings.length > keep) happenings.shift()
    for (const listener of listeners) listener(happening)
  }

  function causeOf(businessUid: string | undefined): number {
    if (businessUid === undefined) return Math.max(0, ...causes.values())
    return Math.max(causes.get(businessUid) ?? 0, causes.get(undefined) ?? 0)
  }

  function begin(given: Given) {
    if (isOne) return
    count += 1
    causes.set(given.business_uid, count)
    write(given, count)
  }

  function add(given: Given) {
    count += 1
    write(given, causeOf(given.business_uid) || count)
  }

  return {
    begin,
    asOne(given, act) {
      begin(given)
      isOne = true
      try {
        act()
      } finally {
        isOne = false
      }
    },
    add,
    addAlone(given) {
      count += 1
      write(given, count)
    },
    all: () => happenings,
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
