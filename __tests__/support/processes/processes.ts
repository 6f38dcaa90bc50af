import { join } from 'node:path'

/** Arguments of Node before code that requires TypeScript files: CommonJS, without top-level `await`. */
export const EVAL_TYPESCRIPT = [
  // Node 22 prints a warning about `node:sqlite`, and tests compare the output of a process.
  '--disable-warning=ExperimentalWarning',
  ...['--require', join(__dirname, 'load-typescript.cjs'), '--eval'],
]
