/** The part of the port for operators and metrics: what came in, what is due, and the version of the schema. */
export interface StoreObservation {
  /**
   * Adds to the tallies in one statement: one row for each `kind`, `name` and `secret`. Called every few seconds at most.
   * Need not be on disk when it resolves.
   */
  addTallies(tallies: readonly NewTally[]): Promise<void>
  /** The tallies of all processes together. */
  tallies(): Promise<Tally[]>
  /** Whether a read, or an entry of `topics` (absent: any), is leased now or due within `withinMs`, as of one moment. */
  dueWork(options: { withinMs: number; topics?: readonly string[] | undefined }): Promise<DueWork>
  /** The number of migrations that the database has seen. */
  schemaVersion(): Promise<number>
}

/** What a tally counts: events, or deliveries that are not for this app. */
export type TallyKind = 'event' | 'unrecognised' | 'other_item' | 'secret_wrong'

interface TallyKey {
  kind: TallyKind
  /** The registration name of an event; '' where there is none. */
  name: string
  /** A fingerprint of the delivery secret; '' where the secret was wrong. */
  secret: string
}

/** An addition to a tally. */
export interface NewTally extends TallyKey {
  count: number
  /** The age of the first and of the last of them. */
  firstAgoMs: number
  lastAgoMs: number
}

/** A count, and when its first and last delivery came. */
export interface Tally extends TallyKey {
  count: number
  firstAt: number
  lastAt: number
}

/** Which work is due or under way. */
export interface DueWork {
  reads: boolean
  entries: boolean
}
