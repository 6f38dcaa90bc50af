import { Console } from 'node:console'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { environmentOf, readEnvironment } from '../../environment.js'
import {
  ConfigError,
  createMarketplace,
  type Marketplace,
  type MarketplaceOptions,
  type PostgresStore,
} from '../../index.js'
import { hasStore, isInUse, sqlitePath, storeFaults } from '../../store-option.js'
import { optionsFromFile } from './config-file.js'
import { type ExitCode, Stop, UNAVAILABLE, USAGE } from './exit-codes.js'
import type { Output } from './output.js'
import { nameOf, secretsOf, settingsStop } from './settings.js'

/** The options of every command. */
export interface CommonOptions {
  config?: string
  env?: string
  json?: boolean
  actor?: string
  reason?: string
}

export interface Action {
  action: string
  businessUid?: string | number
  subscriptionUid?: string | number
  entryId?: string
  /**
   * The object of the action, without identifiers of businesses and subscriptions. The journal gets it beside the
   * reason of the person.
   */
  about?: string
}

/** The settings, the output and the marketplace of a command. */
export interface Context {
  env: NodeJS.ProcessEnv
  stdin: NodeJS.ReadStream
  out: Output
  /** The person who runs the command, for the journal. */
  actor: string
  /** The reason that the person gave. */
  reason: string | undefined
  /** Whether the options come from a file, which may have a rule of the app's own. Otherwise the default rule decides. */
  hasConfig: boolean
  /**
   * The settings, not checked yet. `isDatabaseOnly`, at the first call: what only calls to the platform and deliveries need
   * may be missing.
   */
  options(needs?: { isDatabaseOnly?: boolean }): Promise<MarketplaceOptions>
  /** A marketplace with some options replaced, closed when the command ends. Throws `Stop` with the faults of the settings. */
  create(replaced?: Partial<MarketplaceOptions>): Promise<Marketplace>
  /**
   * A marketplace over the database of the app, opened, without a worker. `asksPlatform`: it also calls the platform, so it
   * needs all settings.
   */
  open(options?: { mayCreate?: boolean; asksPlatform?: boolean }): Promise<Marketplace>
  /** Records the action in the journal before it begins. */
  record(marketplace: Marketplace, action: Action): Promise<void>
  close(): Promise<void>
}

/** Turns a command's work into an action for commander. */
export type Act = <Arguments extends unknown[]>(
  work: (context: Context, ...given: Arguments) => Promise<ExitCode>,
) => (...given: Arguments) => Promise<void>

export function createContext(given: {
  env: NodeJS.ProcessEnv
  stdin: NodeJS.ReadStream
  out: Output
  common: CommonOptions
}): Context {
  const { env, stdin, out, common } = given
  const { config } = common
  if (common.env !== undefined) loadEnvFile(common.env, env)
  const reason = common.reason?.slice(0, MAX_TEXT)
  const actor = actorOf(common, env)
  const opened: Marketplace[] = []
  let loading: Promise<MarketplaceOptions> | undefined

  async function load(isDatabaseOnly: boolean): Promise<MarketplaceOptions> {
    // `optionsFromEnvironment` in the file of the app throws for each variable that is missing.
    if (config && isDatabaseOnly) Object.assign(process.env, environmentOf(withUnused(readEnvironment(env))))
    const options = config ? await optionsFromFile(config) : readEnvironment(env)
    out.hide(secretsOf(options))
    // Stdout has the result only, and `console.info` would write into it.
    return options.logger === console ? { ...options, logger: new Console(process.stderr) } : options
  }

  function options({ isDatabaseOnly = false } = {}) {
    loading ??= load(isDatabaseOnly)
    return loading
  }

  async function create(replaced: Partial<MarketplaceOptions> = {}): Promise<Marketplace> {
    try {
      const marketplace = createMarketplace({ ...(await options()), ...replaced })
      opened.push(marketplace)
      return marketplace
    } catch (error) {
      if (error instanceof ConfigError) throw settingsStop(error, env, config)
      throw error
    }
  }

  return {
    env,
    stdin,
    out,
    actor,
    reason,
    hasConfig: config !== undefined,
    options,
    create,

    async open({ mayCreate = false, asksPlatform = false } = {}) {
      const given = await options({ isDatabaseOnly: !asksPlatform })
      const { store = 'sqlite:marketplace.db' } = given
      // The opening tries for five seconds.
      if (typeof store === 'string' && (await isInUse(store))) out.note(WHILE_IN_USE)
      // Faults of the settings come first: a missing database may be a consequence of them.
      const missing = await whyNoDatabase(store, { mayCreate, config })
      const marketplace = await create({
        ...(asksPlatform ? {} : withUnused(given)),
        worker: false,
        store: missing ? NO_STORE : store,
      })
      if (missing) throw missing
      await marketplace.start()
      return marketplace
    },

    async record(marketplace, { about, ...action }) {
      const why = about === undefined ? reason : reasonWith(reason, about)
      await marketplace.journal.recordAction({ actor, ...action, ...(why ? { reason: why } : {}) })
    },

    async close() {
      for (const marketplace of opened) await marketplace.close()
    },
  }
}

/**
 * Values in place of what a person has not set, and only calls to the platform and deliveries need: over the database
 * alone, a command makes and takes none.
 */
function withUnused({ app, platform, deliverySecrets }: MarketplaceOptions) {
  const unused = randomBytes(24).toString('hex')
  return {
    app: { ...app, clientSecret: app?.clientSecret ?? unused },
    platform: { ...platform, authUrl: platform?.authUrl ?? platform?.baseUrl },
    deliverySecrets: deliverySecrets ?? unused,
  }
}

/** The journal takes no longer name of a person, and no longer reason. */
const MAX_TEXT = 500

/** An empty name counts as not set. One that the journal would refuse ends the command before it does anything. */
function actorOf({ actor: given }: CommonOptions, env: NodeJS.ProcessEnv): string {
  const actor = given?.trim() || env.MARKETPLACE_ACTOR?.trim() || userName()
  if (actor.length <= MAX_TEXT) return actor
  throw new Stop(USAGE, `The name of the person, for the journal, is longer than ${MAX_TEXT} characters`, {
    fix: 'Give a shorter one with --actor or MARKETPLACE_ACTOR.',
  })
}

/** The reason that the person gave, then what was done. Of two that are too long together, each has half of the length. */
export function reasonWith(given: string | undefined, about: string): string {
  if (!given) return about.slice(0, MAX_TEXT)
  const most = MAX_TEXT - ' ()'.length
  const done = about.slice(0, Math.max(most / 2, most - given.length))
  return `${given.slice(0, most - done.length)} (${done})`
}

const NO_STORE = 'sqlite::memory:'

const WHILE_IN_USE =
  'Another process holds the database, as an app on an older SQLite (Node 20, or 22) does. Use the console of the app ' +
  '(marketplace-webhooks/console), or stop the app for this command.'

/**
 * Why a command may not open the store, or undefined. A mistyped path, database or schema would get new tables, which
 * deny every business and hide that nothing was found.
 */
async function whyNoDatabase(
  store: string | PostgresStore,
  { mayCreate, config }: { mayCreate: boolean; config: string | undefined },
): Promise<unknown> {
  // Another fault of the settings.
  if (storeFaults(store).length > 0) return undefined
  const setting = config ? `\`store\` in ${config}` : 'MARKETPLACE_STORE'
  const path = typeof store === 'string' ? sqlitePath(store) : undefined
  if (path === ':memory:')
    return new Stop(USAGE, 'The store is sqlite::memory:, which only the process of the app can read', {
      fix: `Set ${setting} to the database of the app.`,
    })
  if (mayCreate) return undefined
  const isMissing = path !== undefined && !existsSync(path)
  try {
    if (!isMissing && (await hasStore(store))) return undefined
  } catch (error) {
    return error
  }
  const name = typeof store === 'string' ? nameOf(store) : 'PostgreSQL'
  const why = isMissing
    ? `There is no database ${resolve(path)}`
    : `There are no tables of this package in ${path === undefined ? `the database ${name}` : resolve(path)}`
  return new Stop(UNAVAILABLE, why, {
    fix: `Set ${setting} to the database of the app, or create a new one with \`marketplace-webhooks migrate\`.`,
    code: 'store_missing',
  })
}

function loadEnvFile(file: string, env: NodeJS.ProcessEnv) {
  try {
    // Variables that are already set keep their values. An empty one counts as not set, as in `optionsFromEnvironment`.
    const values = Object.entries(parseEnv(readFileSync(file, 'utf8')))
    for (const [name, value] of values) if (!env[name]?.trim()) env[name] = value
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown reason'
    throw new Stop(USAGE, `Cannot read the env file ${file}: ${code}`)
  }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'command line'
  }
}
