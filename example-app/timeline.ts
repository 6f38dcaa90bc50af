/** What kind of thing it was: the platform's own life, its deliveries, our calls to it, what the app saw, decided and served, the stage hands. */
export type Kind =
  | 'platform'
  | 'delivery'
  | 'token'
  | 'read'
  | 'change'
  | 'event'
  | 'decision'
  | 'visit'
  | 'stage'

/** One thing that happened. */
export interface Happening {
  /** Counts from 1. */
  id: number
  /** The id of what a person did that led to it; its own id when it is that. */
  cause: number
  /** Milliseconds since 1970. */
  at: number
  kind: Kind
  /** Whom it concerns; missing: everybody. */
  business_uid?: string
  text: string
  tone: 'plain' | 'good' | 'bad'
}

type Given = Omit<Happening, 'id' | 'cause' | 'at' | 'tone'> & { tone?: Happening['tone'] }

/** What happened, in order. Keeps the newest. */
export interface Timeline {
  /** What a person did: what happens next to the same business, or to everybody, is counted as caused by it. */
  begin(given: Given): void
  /** The same for several things that one press of a button does. */
  asOne(given: Given, act: () => void): void
  /** Something that follows from the newest cause that concerns its business. */
  add(given: Given): void
  /** Something that stands alone: nothing follows from it. */
  addAlone(given: Given): void
  all(): readonly Happening[]
  /** Gives back the way to stop. */
  listen(listener: (happening: Happening) => void): () => void
}

export function createTimeline(keep = 500): Timeline {
  const happenings: Happening[] = []
  const listeners = new Set<(happening: Happening) => void>()
  /** The newest cause of each business; under undefined the newest that concerns everybody. */
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
    if (isOne) return add(given)
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
