import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { CallName } from '../protocol/calls.js'
import type { Replies } from '../protocol/shapes.js'

export const SessionContext = createContext<Replies['session'] | undefined>(undefined)

/** Whether the session is lost. */
export const SignedOutContext = createContext(false)

/** Whether this person may make the call. It only decides what the page shows: the server checks each call. */
export function useMay(name: CallName): boolean {
  return useContext(SessionContext)?.calls.includes(name) ?? false
}
