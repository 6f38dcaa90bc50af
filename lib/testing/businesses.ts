import { cannot } from './cannot.js'

interface Business {
  /** By code name: `installed` after an install, `bought` after a purchase alone. */
  apps: Map<string, 'installed' | 'bought'>
  refused: boolean
}

/** Which businesses the platform knows, which apps they have, and for which it refuses tokens. */
export class Businesses {
  readonly #all = new Map<string, Business>()

  has(uid: string): boolean {
    return this.#all.has(uid)
  }

  /** Adds a business, unless it is known already. */
  add(uid: string): Business {
    const business = this.#all.get(uid) ?? { apps: new Map(), refused: false }
    this.#all.set(uid, business)
    return business
  }

  /** Whether the token endpoint and the read call serve this business: it is known and not refused. */
  serves(uid: string): boolean {
    return this.#all.get(uid)?.refused === false
  }

  refuse(uid: string, refused: boolean): void {
    this.add(uid).refused = refused
  }

  /** A purchase adds the app without an install event. Purchase and install come in either order. */
  buy(uid: string, app: string): void {
    const business = this.add(uid)
    if (!business.apps.has(app)) business.apps.set(app, 'bought')
    business.refused = false
  }

  install(uid: string, app: string): void {
    const business = this.add(uid)
    if (business.apps.get(app) === 'installed') throw cannot('install', `"${app}" is installed at ${uid}`)
    business.apps.set(app, 'installed')
    business.refused = false
  }

  /** A business without apps is refused tokens. */
  uninstall(uid: string, app: string): void {
    const business = this.#all.get(uid)
    if (!business?.apps.delete(app)) throw cannot('uninstall', `"${app}" is not installed at ${uid}`)
    business.refused = business.apps.size === 0
  }
}
