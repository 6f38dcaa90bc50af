/** What people and metrics ask a store beside its entries: what came in, what is due, which schema it has. */
export interface StoreObservation {
  /**
   * Adds to what has come in. Called every few seconds at most, with a row for each `kind`, `name` and `secret`, in one
   * statement. Need not be on disk when it resolves.
   */
  addTallies(tallies: readonly NewTally[]): Promise<void>
  /** What has come in, all processes together. */
  tallies(): Promise<Tally[]>
  /** Whether a read or an entry of `topics` (absent: of any) is due within `withinMs`, or leased now: both as of one moment. */
  dueWork(options: { withinMs: number; topics?: readonly string[] | undefined }): Promise<DueWork>
  /** Of the schema as the database has it: how many migrations it has seen. */
  schemaVersion(): Promise<number>
}

/** What is counted: an event, or deliveries that are none of the app's. */
export type TallyKind = 'event' | 'unrecognised' | 'other_item' | 'secret_wrong'

interface TallyKey {
  kind: TallyKind
  /** The registration name of an event; '' where there is none. */
  name: string
  /** A fingerprint of the delivery secret; '' where none was right. */
  secret: string
}

/** What to add to a count. */
export interface NewTally extends TallyKey {
  count: number
  /** How long ago the first and the last of them came, in ms. */
  firstAgoMs: number
  lastAgoMs: number
}

/** A count as it stands. */
export interface Tally extends TallyKey {
  count: number
  /** Milliseconds since 1970, by the clock of the process that asks. */
  firstAt: number
  lastAt: number
}

/** How much work is due or under way. */
export interface DueWork {
  reads: boolean
  entries: boolean
}
