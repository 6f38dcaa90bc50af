import { messageOf } from '../base/errors.js'
import { cutOff } from './reply.js'

/** Requests and replies of the app's Express version, with the fields its middleware adds (`req.user`). */
// biome-ignore lint/suspicious/noExplicitAny: any other type would refuse one of Express 4, Express 5 or the app's own.
export type AppRequest = any
// biome-ignore lint/suspicious/noExplicitAny: as above.
export type AppResponse = any
export type Next = (error?: unknown) => void

/**
 * The `next` of Express does not throw. If another server's `next` throws, calls it with the error, then closes the
 * connection.
 */
export function callNext(req: AppRequest, res: AppResponse, next: Next, error?: object): void {
  try {
    if (error) next(error)
    else next()
  } catch (thrown) {
    if (error) cutOff(res, req)
    else callNext(req, res, next, asError(thrown, 'call the next middleware'))
  }
}

/**
 * Express continues with the route after `next(undefined)` and `next('route')`, so a thrown value must become an error.
 * `task` is what could not be done.
 */
export function asError(thrown: unknown, task: string): object {
  return typeof thrown === 'object' && thrown !== null
    ? thrown
    : new Error(`Cannot ${task}: ${messageOf(thrown)} was thrown`, { cause: thrown })
}
