/** The part of the port for operators and metrics: what came in, what is due, and the version of the schema. */
export interface StoreObservation {
  /** The newest entries of the journal, at most `limit`: the deliveries among them, counted by name and delivery secret. */
  arrivals(limit: number): Promise<{
    arrivals: Arrival[]
    /** The time of the oldest entry that was counted, by the clock of the process that asks; null: all were. */
    completeSince: number | null
  }>
  /** Whether a read, or an entry of `topics` (absent: any), is leased now or due within `withinMs`, as of one moment. */
  dueWork(options: { withinMs: number; topics?: readonly string[] | undefined }): Promise<DueWork>
  /** The number of migrations that the database has seen. */
  schemaVersion(): Promise<number>
}

/** How many deliveries of one kind and name came with one delivery secret, and when the first and the last of them. */
export interface Arrival {
  kind: 'event' | 'unrecognised'
  /** The registration name of an event; '' when unrecognised. */
  name: string
  /** The fingerprint of the delivery secret; null for an entry that has none. */
  secret: string | null
  count: number
  firstAt: number
  lastAt: number
}

/** Which work is due or under way. */
export interface DueWork {
  reads: boolean
  entries: boolean
}
