/** The calls of the store port for backups, and for databases that were made from one. */
export interface StoreCopies {
  /** Copies all data into the new file `path` while work continues. Rejects `backup_failed`, and `closed` when it is closed meanwhile. */
  backup(path: string): Promise<void>
  /**
   * Makes a regular read of every subscription due within this time, at random times, for a database that was restored. Few
   * subscriptions may be due sooner, at four a second.
   * Reads that are due earlier or under way stay as they are. Subscriptions that were given up before their first read
   * are left out. Returns how many there are.
   */
  refreshAll(withinMs: number): Promise<number>
}
