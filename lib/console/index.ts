export { CALLS, type CallName, type CallRule } from './protocol/calls.js'
export type { Person, Role } from './protocol/roles.js'
export { type ConsoleOptions, type ConsoleRouter, consoleRouter } from './server/router.js'
export type { ConsoleMarketplace } from './server/rows.js'
