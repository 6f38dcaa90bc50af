import { type NewEvent, URGENCY } from '../../../lib/store/port/store.js'
import type { DocumentedSabotage } from './sabotage.js'

/** Sabotages of sentences of the documents that wrap the store. */
export const SABOTAGED_CALLS: readonly DocumentedSabotage[] = [
  {
    what: 'a store that writes only the first element of an array',
    breaks: 'A delivery gets 200 after its commit and sync.',
    store: (store) => ({ accept: (events, waitedMs) => store.accept(events.slice(0, 1), waitedMs) }),
  },
  {
    what: 'a store that drops a delivery which equals one of the last hundred',
    breaks: 'No delivery is dropped because it equals another one.',
    store: (store) => {
      const last: string[] = []
      function isNew({ payload }: NewEvent) {
        if (last.includes(payload)) return false
        if (last.push(payload) > 100) last.shift()
        return true
      }
      return { accept: (events, waitedMs) => store.accept(events.filter(isNew), waitedMs) }
    },
  },
  {
    what: 'a store that writes no request of track and refresh for a subscription that was read',
    breaks: 'In both cases an event, track or refresh causes a read at once.',
    store: (store) => ({
      async requestRefresh(request, cause) {
        if (request.kind === 'business') return
        const [known] = await store.subscriptionsNamed([request.subscriptionUid])
        if (!known?.record) await store.requestRefresh(request, cause)
      },
    }),
  },
  {
    what: 'a reader that makes no regular reads',
    breaks: 'Only the next reconcile finds a change after a longer lag or a lost update.',
    store: (store) => ({
      finishRead: (claim, finish) =>
        store.finishRead(
          claim,
          finish.urgency === URGENCY.reconcile ? { ...finish, nextInMs: null } : finish,
        ),
    }),
  },
  {
    what: 'an answer by the newest subscription of a business alone',
    breaks: 'One subscription of any item of the app is enough.',
    store: (store) => ({
      subscriptionsOf: async (business) => (await store.subscriptionsOf(business)).slice(-1),
    }),
  },
  {
    what: 'a store that never returns what was leased when a process ended',
    breaks: 'After a crash, what was under way or leased is done alone, one after the other.',
    store: () => ({ dueSuspect: async () => null }),
  },
]
