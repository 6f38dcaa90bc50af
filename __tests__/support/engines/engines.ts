import { join } from 'node:path'
import { afterAll, beforeAll } from '@jest/globals'
import { temporaryFolder } from '../clean-up.js'
import { type PostgresServer, startPostgres } from './postgres.js'

export interface TestEngine {
  name: EngineName
  /**
   * An address for the option `store`: an empty database for the running test. If the server was stopped, this starts
   * it again.
   */
  freshAddress(): Promise<string>
  /** The server behind the addresses; throws for an engine without a server. */
  server(): PostgresServer
}

/** The engines on which the store keeps its promises. A whole test file, or several, share one server. */
export const ENGINES = { SQLite: useSqlite, PostgreSQL: usePostgres } satisfies Record<
  string,
  () => TestEngine
>

export type EngineName = keyof typeof ENGINES

/** For `describe.each(ENGINE_NAMES)`. */
export const ENGINE_NAMES = Object.keys(ENGINES) as EngineName[]

/** Call it where hooks are allowed: in a `describe`, or at the top of a test file. */
export function useEngine(name: EngineName): TestEngine {
  return ENGINES[name]()
}

function useSqlite(): TestEngine {
  return {
    name: 'SQLite',
    freshAddress: async () => `sqlite:${join(temporaryFolder(), 'marketplace.db')}`,
    server() {
      throw new Error('SQLite has no server')
    },
  }
}

function usePostgres(): TestEngine {
  let postgres: PostgresServer | undefined
  function server(): PostgresServer {
    if (!postgres)
      throw new Error('PostgreSQL is started before the first test, not while tests are collected')
    return postgres
  }
  beforeAll(async () => {
    postgres = await startPostgres({ lives: 'file' })
  })
  afterAll(() => postgres?.close())
  return {
    name: 'PostgreSQL',
    async freshAddress() {
      await server().start()
      return server().createDatabase()
    },
    server,
  }
}
