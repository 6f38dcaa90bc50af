import { type Clock, MINUTE, SECOND } from '../../../lib/base/clock.js'
import { type Marketplace, type MarketplaceOptions, restoreBackup } from '../../../lib/index.js'
import { createSqliteEngine } from '../../../lib/sqlite/engine.js'
import type { Allowance } from '../../../lib/store/accepting/allowance.js'
import type { Store } from '../../../lib/store/port/store.js'
import { createSqlStore } from '../../../lib/store/sql-store.js'
import type { VirtualClock } from '../machine/virtual-clock.js'
import type { Witness } from '../second-oracle/witness.js'
import { ADDRESSES, CLIENT, DELIVERY_SECRET, OUR_ITEM } from '../settings.js'
import type { DoorReply } from '../world/door.js'
import { createProcess, type Process } from '../world/process.js'
import type { Random } from '../world/random.js'
import type { Sabotage } from '../world/sabotage.js'
import type { Disk } from './disk.js'
import type { Ledger } from './ledger.js'
import type { Platform } from './platform.js'

/** The options that an operator deploys; without them, the correct ones. */
export interface Deployed {
  baseUrl?: string
  authUrl?: string
  clientSecret?: string
  purchasableUid?: string
  /** `none`: a script beside the app. `changes`: events have no handler. `events`: changes wait. */
  handlers?: 'all' | 'changes' | 'events' | 'none'
  retention?: MarketplaceOptions['retention']
  worker?: MarketplaceOptions['worker']
  /** Instead of the file on the disk. */
  connect?: () => Store
}

/** Makes a handler throw when it returns true. */
export type HandlerFault = (of: { business: string; isChange: boolean }) => boolean

export type App = ReturnType<typeof createApp>

/**
 * The app of a world: processes on one file, which are deployed, closed and killed. Most worlds have one at a time.
 * Callers see only its public side.
 */
export function createApp(options: {
  time: VirtualClock
  disk: Disk
  random: Random
  platform: Platform
  ledger: Ledger
  sabotage?: Sabotage | undefined
  /** Writes the log of the second oracle. */
  witness: Witness
  /** What the store keeps of what may be made up; without it, as much as it does for every app. */
  allowance?: Allowance | undefined
}) {
  const { time, disk, random, platform, ledger, sabotage, witness, allowance: most } = options
  const killed: Process[] = []
  let running: Process[] = []
  let delivered = 0
  const now = {
    fails: (() => false) as HandlerFault,
    handlerMs: 0,
    onHandler: (_business: string, _isChange: boolean) => {},
    /** Called when a process begins a call of the platform. */
    onCall: (_address: string) => {},
  }
  /** The table of the app's own that its change handler writes, as the README shows. */
  const open = new Map<string, boolean>()

  async function handle(
    entry: { id: string; key: string; business: string; change?: string; entitled?: boolean },
    own: Process,
  ) {
    if (own.isDead()) return
    const { key, business, change, entitled } = entry
    const end = ledger.onCall(entry, () => !own.isDead())
    now.onHandler(business, change !== undefined)
    const fails = now.fails({ business, isChange: change !== undefined })
    if (!fails && entitled !== undefined) {
      const { known } = await time.follow(own.marketplace.explain(business))
      ledger.onAnswer(business, entitled || known)
      open.set(business, entitled)
    }
    const takesMs = now.handlerMs || random.of(`${time.passed()} ${key}`).pick([0, 0, 20, 800])
    if (takesMs > 0) await time.follow(time.sleep(takesMs))
    await own.enter()
    end(!fails)
    if (fails) throw new Error('the mail server is down')
  }

  /** Starts one more process. */
  function deploy(deployed: Deployed = {}) {
    const { clientSecret = CLIENT.clientSecret, purchasableUid = OUR_ITEM, handlers = 'all' } = deployed
    const { baseUrl = ADDRESSES.baseUrl, authUrl = ADDRESSES.authUrl, retention, worker, connect } = deployed
    const own = createProcess({
      ...{ time, sabotage, witness },
      store: connect ? connect() : most ? withAllowance(disk.path(), most) : `sqlite:${disk.path()}`,
      // Statements of a server stop the time by themselves.
      storeNeedsTime: true,
      fetch(...args) {
        now.onCall(String(args[0]))
        return platform.fetch(...args)
      },
      settings: {
        app: { clientId: CLIENT.clientId, clientSecret, purchasableUid, codeName: 'ours' },
        platform: { baseUrl, authUrl },
        ...{ retention, worker },
      },
    })
    const { marketplace } = own
    if (handlers === 'all' || handlers === 'changes') {
      marketplace.onPurchaseChange((change) => {
        const { id, subscription_uid: key, business_uid: business, entitled, from, to, record } = change
        const words = `${from} to ${to} of ${record?.updated_at}`
        return handle({ id, key, business, change: words, entitled }, own)
      })
      marketplace.onEntitlementChange(() => {})
    }
    if (handlers === 'all' || handlers === 'events') {
      marketplace.onAny(({ id, data }) => {
        const { subscription_uid, uid, business_id, business_uid } = data as Record<string, string>
        const business = business_id ?? business_uid ?? ''
        return handle({ id, key: subscription_uid ?? uid ?? business, business }, own)
      })
      marketplace.onUnrecognised(({ id }) => handle({ id, key: id, business: '' }, own))
    }
    marketplace.onHandlerError(({ id, subscription_uid, retryInMs }) => {
      if (retryInMs === null && !own.isDead()) ledger.onDead(id, subscription_uid)
    })
    running.push(own)
  }

  async function close() {
    const closing = running
    running = []
    for (const own of closing) await end(own)
  }

  async function end(own: Process) {
    running = running.filter((each) => each !== own)
    await time.until(own.marketplace.close(), MINUTE)
    own.kill()
  }

  return {
    now,
    open,
    isUp: () => running.length > 0,
    marketplace(): Marketplace {
      const [first] = running
      if (!first) throw new Error('the app is down')
      return first.marketplace
    },
    /** Those of all processes. */
    marketplaces: () => running.map(({ marketplace }) => marketplace),
    deploy,
    close,
    /** Closes the app and starts it with other options. */
    async redeploy(deployed: Deployed = {}) {
      await close()
      deploy(deployed)
      await time.advance(SECOND)
    },
    /** Replaces the processes one after the other, each by a new one that starts before the old one closes. */
    async roll(instances: readonly Deployed[], pauseMs: number) {
      const old = [...running]
      for (let i = 0; i < Math.max(old.length, instances.length); i++) {
        const deployed = instances[i]
        if (deployed) deploy(deployed)
        await time.advance(pauseMs)
        const leaving = old[i]
        if (leaving) await end(leaving)
      }
    },
    /** While no process runs, the database becomes the backup. */
    async restore(backup: string) {
      const options = {
        app: { ...CLIENT, purchasableUid: OUR_ITEM },
        platform: ADDRESSES,
        deliverySecrets: DELIVERY_SECRET,
        store: `sqlite:${disk.path()}`,
        clock: time.forProcess(),
      }
      await time.until(restoreBackup(options, backup))
      witness.note({ kind: 'machine', what: 'restored' })
    },
    /** From now on, none of the processes' code runs. */
    kill({ power = false } = {}) {
      for (const own of running) own.kill()
      killed.push(...running.splice(0))
      ledger.onKill()
      if (power) ledger.onPowerCut()
      disk.leave({ power })
      if (power) witness.note({ kind: 'machine', what: 'power was cut' })
    },

    /** Releases the real resources of killed processes, at the end of the world. */
    async bury() {
      for (const own of killed) await own.bury()
    },

    /** Makes one delivery, to each process in turn. */
    async deliver(body: string): Promise<DoorReply> {
      const own = running[delivered++ % running.length]
      return own && !time.isSuspended() ? own.deliver([body]) : { status: 0, text: '' }
    },
  }
}

/** The store of a file that keeps less than usual of what may be made up. */
function withAllowance(path: string, most: Allowance) {
  return (clock: Clock) => createSqlStore(createSqliteEngine({ path, clock }), clock, { most })
}
