import type { Connection } from './sql.js'

/** A transaction while its work runs. */
export interface Transaction extends Connection {
  /**
   * Takes answers that decide nothing in the work: their statements have been sent, the commit is sent without waiting for them,
   * and the transaction rejects with their error.
   */
  leave(answers: Promise<unknown>): void
}

/** The error of a statement that is sent after the work of its transaction has ended: it would run outside of it. */
export const IS_OVER = 'the transaction has ended'

/** What the work of one transaction leaves to it. */
export function createLeft() {
  const left: Promise<unknown>[] = []
  let failed: { error: unknown } | undefined
  return {
    leave(answers: Promise<unknown>) {
      left.push(answers)
      answers.catch((error) => {
        failed ??= { error }
      })
    },
    /** Throws the error of what has failed already, perhaps before it sent its statement. */
    throwFailed() {
      if (failed) throw failed.error
    },
    /** Rejects with the error of one of them. */
    answered: () => Promise.all(left),
  }
}
