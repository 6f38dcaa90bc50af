import { join } from 'node:path'

/** Arguments of Node in front of a code that requires TypeScript files: CommonJS, without top-level `await`. */
export const EVAL_TYPESCRIPT = [
  // Node 22 warns of `node:sqlite`, and tests compare what a process prints.
  '--disable-warning=ExperimentalWarning',
  ...['--require', join(__dirname, 'load-typescript.cjs'), '--eval'],
]
