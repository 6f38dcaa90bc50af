export { type ConsoleOptions, type ConsoleRouter, consoleRouter } from './server/router.js'
export type { ConsoleMarketplace } from './server/rows.js'
export { CALLS, type CallName, type CallRule } from './shared/calls.js'
export type { Person, Role } from './shared/roles.js'
