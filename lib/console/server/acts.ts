import { type Decision, failureInWords, type SubscriptionStatus } from '../../index.js'
import type { Inputs } from '../protocol/inputs.js'
import type { Person } from '../protocol/roles.js'
import type { Replies } from '../protocol/shapes.js'
import type { createReplay } from './attention/replay.js'
import type { createBusinessCalls } from './business/business.js'
import { readAgainInWords } from './business/read-again.js'
import { Refusal } from './http.js'
import type { createStoredCall } from './privacy.js'
import type { ConsoleMarketplace } from './rows.js'
import type { Scans } from './scans.js'

/**
 * The calls that change something. Each first records an action in the journal, and fails if that fails. An erasure
 * records itself.
 */
export function createActs(options: {
  marketplace: ConsoleMarketplace
  scans: Pick<Scans, 'eachInTurn'>
  business: ReturnType<typeof createBusinessCalls>['business']
  replays: ReturnType<typeof createReplay>
  stored: ReturnType<typeof createStoredCall>
}) {
  const { marketplace, scans, business, replays, stored } = options

  function record(
    person: Person,
    action: string,
    about: { businessUid?: string; subscriptionUid?: string; entryId?: string },
    ...why: (string | undefined)[]
  ) {
    const reason = why.filter((part) => part !== undefined && part !== '').join('; ')
    return marketplace.journal.recordAction({
      actor: actorOf(person),
      action,
      ...about,
      ...(reason === '' ? {} : { reason }),
    })
  }

  /** Waits for the read, so that the person sees the result. */
  async function readAgain(
    person: Person,
    business_uid: string,
    before: Decision,
    tracked?: string,
  ): Promise<Replies['refresh']> {
    const after = await marketplace.businesses.refresh(business_uid)
    const outcome = readAgainInWords(before, after, { left: await leftOf(before, after), tracked })
    return { ...(await business(person, { business_uid }, after)), outcome }
  }

  /** The subscriptions that are no longer of the business. A decision lists only the newest of those that were never read. */
  async function leftOf({ business_uid, subscriptions }: Decision, after: Decision): Promise<string[]> {
    if (after.reason === 'store_unavailable') return []
    const listed = new Set(after.subscriptions.map(({ subscription_uid }) => subscription_uid))
    const left: string[] = []
    for (const { subscription_uid: uid } of subscriptions)
      if (!listed.has(uid) && (await marketplace.subscriptions.get(uid))?.business_uid !== business_uid)
        left.push(uid)
    return left
  }

  return {
    async refresh(person: Person, { business_uid, reason }: Inputs['refresh']): Promise<Replies['refresh']> {
      await record(person, 'refresh', { businessUid: business_uid }, reason)
      return readAgain(person, business_uid, await marketplace.explain(business_uid))
    },

    async track(
      person: Person,
      { business_uid, subscription_uid, announce = true, reason }: Inputs['track'],
    ): Promise<Replies['track']> {
      const named = { businessUid: business_uid, subscriptionUid: subscription_uid }
      // A typo that is stored would make of "has not bought" a "not known yet", which nobody can take back.
      const { failure } = await marketplace.subscriptions.look(named)
      if (failure !== null)
        throw notShown(failure, await marketplace.subscriptions.get(subscription_uid), business_uid)
      await record(person, 'track', named, reason)
      const before = await marketplace.explain(business_uid)
      await marketplace.subscriptions.track(named, { announce })
      // One of another business moves when it is read.
      const owner = (await marketplace.subscriptions.get(subscription_uid))?.business_uid
      if (owner !== undefined && owner !== business_uid) await marketplace.businesses.refresh(owner)
      return readAgain(person, business_uid, before, subscription_uid)
    },

    async replay(person: Person, { reason, ...selection }: Inputs['replay']): Promise<Replies['replay']> {
      const { entryId } = selection
      if (entryId === undefined && !reason)
        throw new Refusal(
          400,
          'reason_missing',
          'Give a reason: the journal records why several entries are replayed.',
        )
      const selected = await replays.selected(selection)
      const about = entryId === undefined ? `${selected.ids.length} entries ${selected.which}` : undefined
      await record(person, 'replay', entryId === undefined ? {} : { entryId }, about, reason)
      if (entryId !== undefined) return replays.replay(selected)
      // The timeline of each business has the action too.
      const named = new Set<string>()
      return replays.replay(selected, async (id) => {
        const businessUid = selected.businessOf.get(id)
        if (businessUid === undefined || named.has(businessUid)) return
        named.add(businessUid)
        await record(person, 'replay', { businessUid, entryId: id }, `one of ${about}`, reason)
      })
    },

    export(person: Person, { business_uid, reason }: Inputs['export']): ExportFile {
      async function* pieces() {
        await record(person, 'export', { businessUid: business_uid }, reason)
        yield* marketplace.businesses.exportText(business_uid)
      }
      const fileName = `business-${business_uid.replace(/[^\w-]/g, '_').slice(0, 60)}.json`
      return { fileName, pieces: scans.eachInTurn(pieces) }
    },

    async erase(person: Person, { business_uid, typed, reason }: Inputs['erase']): Promise<Replies['erase']> {
      if (typed.trim() !== business_uid)
        throw new Refusal(
          400,
          'typed_wrong',
          'Nothing was erased: the typed identifier is not the identifier of this business.',
        )
      if (!(await stored(business_uid)).isStored)
        throw new Refusal(404, 'nothing_stored', 'Nothing is stored for this business. Check the identifier.')
      return marketplace.businesses.erase(business_uid, { actor: actorOf(person), reason })
    },
  }
}

/** Why a subscription is not tracked. `stored`: the subscription, if it was read before, perhaps of another business. */
function notShown(failure: string, stored: SubscriptionStatus | undefined, asked: string): Refusal {
  const isOfAnother = failure === 'platform_record_mismatch' || failure === 'platform_record_missing'
  const owner = stored?.record ? stored.business_uid : asked
  const why =
    isOfAnother && owner !== asked
      ? `It belongs to the business ${owner}, as last read: look at that one.`
      : failure === 'platform_record_mismatch'
        ? 'It belongs to another business. Ask the customer which of their accounts bought the app.'
        : failure === 'platform_record_missing'
          ? 'The platform shows no such subscription to this business. Check the identifier, and which account bought it.'
          : `The app could not look: ${failureInWords(failure)}.`
  return new Refusal(422, 'not_shown', `${why} Nothing was changed.`)
}

/** An export to send. Its first piece comes after its action is recorded. */
export interface ExportFile {
  fileName: string
  pieces: AsyncGenerator<string, void>
}

function actorOf({ name, role }: Person): string {
  return `${name} (${role})`
}
