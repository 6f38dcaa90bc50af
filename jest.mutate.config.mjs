import base from './jest.config.mjs'

/** The tests that `npm run mutate` runs against each mutant. */
/** @type {import('jest').Config} */
export default {
  ...base,
  reporters: ['default'],
  maxWorkers: 1,
  testSequencer: '<rootDir>/scripts/mutate/in-given-order.mjs',
}
