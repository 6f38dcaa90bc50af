import { MINUTE } from '../../base/clock.js'
import {
  type ClaimSuspectLane,
  EVERY_EVENT,
  type Leased,
  MAX_LAPSES,
  type Store,
  type SuspectKind,
  type Topic,
} from '../port/store.js'
import type { Engine } from '../sql/engine.js'
import { type Connection, type Sql, sql } from '../sql/sql.js'
import { LEASED, newLeaseToken, TAKEN_BACK } from './leases.js'
import { createLookBack, type LookBack } from './look-back.js'

/** The first pause of a read that has ended the process `MAX_LAPSES` times. It doubles this many times. */
const PAUSE_MS = 5 * MINUTE
const DOUBLINGS = 6

/** A suspect that was leased to run alone. `lapses`: how often it began alone before and did not end. */
interface Begun extends Leased {
  lapses: number
}

/**
 * Suspects are lanes and subscriptions whose lease ran out. They are leased one at a time. The fewest lapses come first:
 * so the innocent ones, which were leased beside the one that ends the process, are all done after its first try alone.
 * docs/states.md has the states.
 */
export function createSuspects(engine: Engine) {
  const lookBack = createLookBack(engine)
  const hasRunOut = (kind: SuspectKind) =>
    sql`lease_token is not null and lease_token <> ${TAKEN_BACK} and ${LEASED[kind].dueAt} <= ${engine.leaseNow()}`
  const isMarked = (kind: SuspectKind) =>
    sql`suspect = 1 and lease_token is null and ${LEASED[kind].dueAt} <= ${engine.now()}`

  /** A query for the fewest lapses of a due suspect: of those already marked, and of those whose lease has run out. */
  function fewestLapses(kind: SuspectKind, among: Sql, look: LookBack): Sql {
    const { table, dueAt } = LEASED[kind]
    return sql`
      select ${sql.lit(kind)} as kind, min(lapses) as lapses, max(out_for) as out_for from (
        select * from (
          select lapses, 0 as out_for from ${table} where ${isMarked(kind)} and ${among} order by lapses limit 1
        ) as marked
        union all
        select * from (
          select lapses, ${engine.leaseNow()} - ${dueAt} as out_for from ${table}
          where ${hasRunOutSince(kind, look)} and ${among} order by ${dueAt} limit 100
        ) as run_out
      ) as ${sql.ref(`suspect_${kind}s`)}`
  }

  /** `hasRunOut`, of the rows that a look back reads. */
  function hasRunOutSince(kind: SuspectKind, look: LookBack): Sql {
    return sql`${hasRunOut(kind)} and ${look.since(kind, LEASED[kind].dueAt, engine.leaseNow())}`
  }

  /** A condition of the lanes that the caller may lease. It uses no index: suspects are few, due lanes may be many. */
  const lanesOf = ({ topics, exceptKeys }: Pick<ClaimSuspectLane, 'topics' | 'exceptKeys'>) =>
    sql`${isAmong(topics)} and key not in ${engine.keys(exceptKeys)}`

  /** Marks those of these rows that have run out. The end of a lease is in the time of leases, a due time in that of dates. */
  async function mark(trx: Connection, kind: SuspectKind, among: Sql) {
    const { table, id, dueAt } = LEASED[kind]
    await sql`
      update ${table} set suspect = 1, lease_token = null, ${dueAt} = ${dueAt} + (${engine.now()} - ${engine.leaseNow()}) where ${id} in (
        select ${id} from ${table} where ${hasRunOut(kind)} and ${among} order by ${id} ${engine.skipLocked}
      )`.execute(trx)
  }

  return {
    lanesOf,
    mark,

    /** The kind of the due suspect with the fewest lapses. */
    async due(
      db: Connection,
      { kinds, ...lanes }: Parameters<Store['dueSuspect']>[0],
    ): Promise<SuspectKind | null> {
      const among = { lane: lanesOf(lanes), read: ANY }
      const look = lookBack.look()
      const each = kinds.map((kind) => fewestLapses(kind, among[kind], look))
      const found = await look.during(
        sql<{ kind: SuspectKind; out_for: number }>`
          select kind, out_for from (${sql.join(each, ' union all ')}) as suspects
          where lapses is not null order by lapses, kind`.execute(db),
      )
      for (const kind of kinds) look.found(kind, found.find((row) => row.kind === kind)?.out_for ?? 0)
      return found[0]?.kind ?? null
    },

    /** Marks what has run out, and leases the due suspect with the fewest lapses. This counts as its beginning. */
    async begin(
      trx: Connection,
      kind: SuspectKind,
      leaseMs: number,
      among: Sql = ANY,
    ): Promise<Begun | undefined> {
      const { table, id, dueAt } = LEASED[kind]
      await mark(trx, kind, hasRunOutSince(kind, lookBack.lookAgain()))
      const leaseToken = newLeaseToken()
      const [begun] = await sql<{ id: string; lapses: number }>`
        update ${table} set lapses = lapses + 1, lease_token = ${leaseToken}, ${dueAt} = ${engine.leaseNow()} + ${leaseMs}
        where ${id} = (
          select ${id} from ${table} where ${isMarked(kind)} and ${among}
          order by lapses, ${dueAt} limit 1 ${engine.skipLocked}
        ) returning ${id} as id, lapses`.execute(trx)
      return begun && { id: begun.id, leaseToken, lapses: begun.lapses - 1 }
    },

    /** Puts off the reads that have run out and ended the process `MAX_LAPSES` times, instead of the next try. */
    async putOffReads(trx: Connection) {
      const doublings = sql`case when lapses > ${sql.lit(MAX_LAPSES + DOUBLINGS)} then ${sql.lit(DOUBLINGS)}
        else lapses - ${sql.lit(MAX_LAPSES)} end`
      await sql`
        update subscriptions set suspect = 1, lease_token = null, failure = 'lease_lapsed',
          refresh_at = ${engine.now()} + ${sql.lit(PAUSE_MS)} * (1 << (${doublings}))
        where subscription_uid in (
          select subscription_uid from subscriptions where ${hasRunOutSince('read', lookBack.lookAgain())} and lapses >= ${sql.lit(MAX_LAPSES)}
          order by subscription_uid ${engine.skipLocked}
        )`.execute(trx)
    },
  }
}

const ANY = sql`1 = 1`

function isAmong(topics: readonly Topic[]): Sql {
  if (topics.length === 0) return sql`1 = 0`
  const topic = sql`(topic || '')`
  const named = sql`${topic} in (${sql.join(topics)})`
  return topics.includes(EVERY_EVENT)
    ? sql`(${named} or (${topic} > 'event:' and ${topic} < 'event;'))`
    : named
}

export type Suspects = ReturnType<typeof createSuspects>
