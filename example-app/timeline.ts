/** Who did it: the platform's own life, its deliveries, our calls to it, what the app saw and decided, the stage hands. */
export type Lane = 'platform' | 'delivery' | 'token' | 'read' | 'change' | 'event' | 'decision' | 'stage'

/** One thing that happened. */
export interface Happening {
  /** Counts from 1. */
  id: number
  /** Milliseconds since 1970. */
  at: number
  lane: Lane
  /** Whom it concerns; missing: everybody. */
  business_uid?: string
  text: string
  tone: 'plain' | 'good' | 'bad'
}

/** What happened, in order. Keeps the newest. */
export interface Timeline {
  add(happening: Omit<Happening, 'id' | 'at' | 'tone'> & { tone?: Happening['tone'] }): void
  all(): readonly Happening[]
  /** Gives back the way to stop. */
  listen(listener: (happening: Happening) => void): () => void
}

export function createTimeline(keep = 500): Timeline {
  const happenings: Happening[] = []
  const listeners = new Set<(happening: Happening) => void>()
  let count = 0
  return {
    add(given) {
      count += 1
      const happening: Happening = { tone: 'plain', ...given, id: count, at: Date.now() }
      happenings.push(happening)
      if (happenings.length > keep) happenings.shift()
      for (const listener of listeners) listener(happening)
    },
    all: () => happenings,
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
