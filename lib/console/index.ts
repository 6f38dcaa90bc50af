export { CALLS, type CallName, type CallRule } from './calls.js'
export type { ConsoleMarketplace } from './needs.js'
export type { Person, Role } from './roles.js'
export { type ConsoleOptions, type ConsoleRouter, consoleRouter } from './router.js'
