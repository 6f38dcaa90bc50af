import { join } from 'node:path'

/** Arguments of Node in front of a code that requires TypeScript files: CommonJS, without top-level `await`. */
export const EVAL_TYPESCRIPT = ['--require', join(__dirname, 'load-typescript.cjs'), '--eval']
