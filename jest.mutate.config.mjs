import base from './jest.config.mjs'

/** The tests that `npm run mutate` runs against each mutant: those of one module, in one process. */
/** @type {import('jest').Config} */
export default {
  ...base,
  testMatch: (process.env.MUTATE_TESTS ?? '').split(',').map((file) => `<rootDir>/__tests__/**/${file}`),
  reporters: ['default'],
  maxWorkers: 1,
  // Many a mutant leaves a promise that never ends.
  testTimeout: 5_000,
}
