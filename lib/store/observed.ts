/** What people and metrics ask a store beside its entries: what came in, what is due, its schema, and who uses it. */
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
  /**
   * Stores that an instance runs, and deletes every other one not reported for `forgetMs`. Called when an instance starts,
   * and once a minute. Need not be on disk when it resolves.
   */
  reportInstance(report: InstanceReport): Promise<void>
  /** Deletes an instance that ends. Need not be on disk when it resolves. */
  forgetInstance(id: string): Promise<void>
  /** The instances reported within `withinMs`, the one that started first first. */
  instances(options: { withinMs: number }): Promise<Instance[]>
}

interface InstanceKey {
  /** Unique to each start. */
  id: string
  /** Version of this package. */
  version: string
  /** Whether it reads and handles, or only receives. */
  hasWorker: boolean
}

/** What an instance reports of itself. */
export interface InstanceReport extends InstanceKey {
  /** How long ago it started, in ms. Only its first report counts. */
  startedAgoMs: number
  forgetMs: number
}

/** An instance that uses the store. */
export interface Instance extends InstanceKey {
  /** Milliseconds since 1970, by the clock of the process that asks. */
  startedAt: number
  /** When it last reported. */
  seenAt: number
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
