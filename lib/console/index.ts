export { CALLS, type CallName, type CallRule } from './calls.js'
export { NEXT_STEPS, type NextStep } from './next-steps.js'
export type { Person, Role } from './roles.js'
export { type ConsoleOptions, type ConsoleRouter, consoleRouter } from './router.js'
