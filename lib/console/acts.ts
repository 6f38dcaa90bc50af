import type { createAttention } from './attention.js'
import type { createBusinessCalls } from './business.js'
import type { Inputs } from './inputs.js'
import type { ConsoleMarketplace } from './needs.js'
import { Refusal } from './refusal.js'
import type { Person } from './roles.js'
import type { Replies } from './shapes.js'

/**
 * What people do. Each leaves an action in the journal before it begins: what cannot be recorded is not done. An erasure is
 * recorded twice: before it begins as `erase requested`, with the reason, and by `erase` itself.
 */
export function createActs(options: {
  marketplace: ConsoleMarketplace
  business: ReturnType<typeof createBusinessCalls>['business']
  attention: ReturnType<typeof createAttention>
}) {
  const { marketplace, business, attention } = options

  function record(
    { name, role }: Person,
    action: string,
    about: { business_uid?: string; entry_id?: string },
    ...why: (string | undefined)[]
  ) {
    const reason = why.filter((part) => part !== undefined && part !== '').join('; ')
    return marketplace.journal.recordAction({
      actor: `${name} (${role})`,
      action,
      ...about,
      ...(reason === '' ? {} : { reason }),
    })
  }

  return {
    async refresh(person: Person, { business_uid, reason }: Inputs['refresh']): Promise<Replies['refresh']> {
      await record(person, 'refresh', { business_uid }, reason)
      return business(person, { business_uid }, await marketplace.refresh(business_uid))
    },

    async track(
      person: Person,
      { business_uid, subscription_uid, announce = true, reason }: Inputs['track'],
    ): Promise<Replies['track']> {
      await record(person, 'track', { business_uid }, `subscription ${subscription_uid}`, reason)
      await marketplace.track({ subscription_uid, business_uid }, { announce })
      // Waits for the read, so that the person sees what came of it.
      return business(person, { business_uid }, await marketplace.refresh(business_uid))
    },

    async replay(person: Person, { reason, ...selection }: Inputs['replay']): Promise<Replies['replay']> {
      const { entry_id } = selection
      if (entry_id === undefined && !reason)
        throw new Refusal(
          400,
          'reason_missing',
          'Say why: a replay of several entries is kept with its reason.',
        )
      const { ids, words } = await attention.selected(selection)
      const what = entry_id === undefined ? `${ids.length} entries ${words}` : undefined
      await record(person, 'replay', entry_id === undefined ? {} : { entry_id }, what, reason)
      return attention.replay(selection)
    },

    async export(person: Person, { business_uid, reason }: Inputs['export']): Promise<Replies['export']> {
      await record(person, 'export', { business_uid }, reason)
      const data = await marketplace.exportData(business_uid)
      return { fileName: `business-${business_uid.replace(/[^\w-]/g, '_').slice(0, 60)}.json`, data }
    },

    async erase(person: Person, { business_uid, typed, reason }: Inputs['erase']): Promise<Replies['erase']> {
      if (typed.trim() !== business_uid)
        throw new Refusal(
          400,
          'typed_wrong',
          'The identifier that was typed is not the one of this business. Nothing was erased.',
        )
      // Not as the business's own: that would be erased with it.
      await record(person, 'erase requested', {}, `business ${business_uid}`, reason)
      return marketplace.erase(business_uid, { actor: `${person.name} (${person.role})` })
    },
  }
}
