import type { Simulator } from './api.js'
import type { World } from './world.js'

/** What businesses do on the platform, as methods of the simulator. `opened` throws after the close. */
export function createMoves(
  world: World,
  opened: () => World,
): Pick<
  Simulator,
  | 'addBusiness'
  | 'purchase'
  | 'confirmPayment'
  | 'paymentIssue'
  | 'cancel'
  | 'install'
  | 'uninstall'
  | 'cancelPlatform'
  | 'mainSubscription'
  | 'touch'
  | 'set'
  | 'remove'
  | 'refuseTokens'
  | 'servesTokens'
  | 'subscription'
  | 'subscriptions'
> {
  return {
    addBusiness: (businessUid) => void opened().businesses.add(businessUid),
    purchase: (purchase) => opened().purchase(purchase),
    confirmPayment: (uid) => opened().move(uid, 'Payment confirmation received'),
    paymentIssue: (uid) => opened().move(uid, 'Payment issue received'),
    cancel: (uid) => opened().move(uid, 'User cancels the app subscription'),
    install: (businessUid, codeName) => opened().install(businessUid, codeName),
    uninstall: (businessUid, codeName) => opened().uninstall(businessUid, codeName),
    cancelPlatform: (businessUid) => opened().cancelPlatform(businessUid),
    mainSubscription: (main) => opened().mainSubscription(main),
    touch: (uid) => opened().set(uid, {}),
    set: (uid, fields) => opened().set(uid, fields),
    remove: (uid) => opened().remove(uid),
    refuseTokens: (businessUid, refused = true) => opened().businesses.refuse(businessUid, refused),
    servesTokens: (businessUid) => world.businesses.serves(businessUid),
    subscription: (uid) => world.get(uid),
    subscriptions: () => world.all(),
  }
}
