/** The text of the error, which is also in the log of the server. */
const OUTDATED = 'marketplace-webhooks repeats this transaction, because a setting in its tables has changed'

/**
 * The last answers of queries whose answers rarely change, such as the topics that have handlers. A transaction assumes
 * such an answer, so it need not wait for it, and fails in the server when the assumption does not hold.
 */
export function createAnswers() {
  const last = new Map<string, string>()

  return {
    /** The rows of the last answer, and the statement that fails when the query has another answer now: `$1` is `literal`. */
    assume(query: string): { rows: unknown[]; check: { text: string; literal: string } } | undefined {
      const json = last.get(query)
      if (json === undefined) return undefined
      const text = `select (case when (${asJson(query)}) = $1 then '0' else '${OUTDATED}' end)::int`
      return { rows: JSON.parse(json), check: { text, literal: `$$${json}$$` } }
    },
    /** The statement that asks for the answer. */
    ask: asJson,
    /** Keeps an answer to `ask`. Returns the rows of the query. */
    keep(query: string, [answer]: unknown[]): unknown[] {
      const { json } = answer as { json: string }
      // `$$` would end the literal early.
      if (!json.includes('$')) last.set(query, json)
      return JSON.parse(json)
    },
    forget: () => last.clear(),
  }
}

function asJson(query: string): string {
  return `select coalesce(json_agg(answer)::text, '[]') as json from (${query}) as answer`
}

/** Whether a transaction failed because it assumed an answer that has changed. */
export function isOutdated(error: unknown): boolean {
  return String((error as { message?: unknown } | null)?.message).includes(OUTDATED)
}
