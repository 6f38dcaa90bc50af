import { type Clock, MINUTE, SECOND } from '../base/clock.js'

/** How often the server is asked about them. */
const ASK_EVERY_MS = SECOND
/** A connection is closed when the server has not confirmed for so long that it works for it. */
const SURE_MS = MINUTE / 2

/** A connection whose answer did not come in time. */
export interface Unanswered {
  /** The process of the server, if the driver knows it. */
  pid: number | undefined
  /** Settles when the answer comes after all, or the connection ends. */
  answered: Promise<unknown>
  /** Returns it to its pool; with `destroy` it is closed instead. */
  release(destroy: boolean): void
}

/**
 * Connections that did not answer in time. Such a connection keeps its place in the pool: the server may go on working for
 * it, above all while a commit waits for a disk or a standby, whatever its client does. With a new connection in its
 * place the server would have one more each time. It returns to the pool with its answer. It is closed when the
 * server, asked over another connection, does not work for it, so that only its answer was lost; or if nobody can ask. So the
 * last place of a pool is for asking: it is not lent while all others are kept.
 */
export function createUnanswered(clock: Clock) {
  const held = new Set<Unanswered & { sureUntil: number }>()
  let askedAt = Number.NEGATIVE_INFINITY
  let isClosed = false
  let timer: unknown

  function release(each: Unanswered & { sureUntil: number }, destroy: boolean) {
    if (held.delete(each)) each.release(destroy)
  }

  /** Closes one at a time, because over the connection that gets its place the server is asked about the others. */
  function closeUnsure() {
    timer = undefined
    const unsure = [...held].find(({ sureUntil }) => sureUntil <= clock.monotonic())
    if (unsure) release(unsure, true)
    if (held.size > 0) timer = clock.setTimeout(closeUnsure, SECOND)
  }

  return {
    /** The number of connections that wait for their answer. */
    count: () => held.size,

    /** The pool has been opened, perhaps again. */
    open() {
      isClosed = false
    },

    /** Keeps the connection, which nobody uses any more, until its answer comes. */
    hold(connection: Unanswered) {
      connection.answered.catch(() => {})
      if (isClosed) return connection.release(true)
      const each = { ...connection, sureUntil: clock.monotonic() + SURE_MS }
      held.add(each)
      timer ??= clock.setTimeout(closeUnsure, SECOND)
      connection.answered.then(
        () => release(each, false),
        () => release(each, true),
      )
    },

    /** Asks over a working connection for which of them the server works, and closes the others. */
    async ask({ query }: { query(text: string, values: readonly unknown[]): Promise<unknown[]> }) {
      if (held.size === 0 || clock.monotonic() - askedAt < ASK_EVERY_MS) return
      askedAt = clock.monotonic()
      const asked = [...held].filter(({ pid }) => pid !== undefined)
      const rows = await query(BUSY, [asked.map(({ pid }) => pid)])
      const busy = new Set(rows.map((row) => (row as { pid: number }).pid))
      for (const each of asked) {
        if (busy.has(each.pid as number)) each.sureUntil = clock.monotonic() + SURE_MS
        else release(each, true)
      }
    },

    /** Closes all of them, and those that come until the pool is opened again: its end waits for each. */
    close() {
      isClosed = true
      clock.clearTimeout(timer)
      timer = undefined
      for (const each of held) release(each, true)
    },
  }
}

/**
 * Those of our own processes of the server that work. The others are ended there too, because the end of a
 * connection may get lost as its answer did. `materialized`: else the planner may call the end first, for every process of the
 * server, because it believes the comparison with eight pids to be dearer. `case`: the end comes after the question.
 */
const BUSY = `
  with held as materialized (
    select pid, coalesce(state, 'active') = 'active' and wait_event_type is distinct from 'Client' as is_busy
    from pg_catalog.pg_stat_activity where pid = any($1::int[]) and usename = current_user
  )
  select pid from held where case when is_busy then true else not pg_catalog.pg_terminate_backend(pid) end`
