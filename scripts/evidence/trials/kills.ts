import { liveAndDie } from '../kills/lineage.js'
import type { Trial } from '../trial.js'

/** How often a lineage is killed. */
const KILLS = 50

/** Kills real processes on the built package, on a SQLite file or a PostgreSQL server. */
export const kills: Trial = async (seed, createStore) =>
  liveAndDie({ store: await createStore(), seed, kills: KILLS })
