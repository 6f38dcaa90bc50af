import { availableParallelism } from 'node:os'

// Not UTC, and not that of the machine, so that no time is correct by chance.
process.env.TZ = 'Asia/Kathmandu'

/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/__tests__/**/*.test.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'commonjs' } },
    ],
  },
  // Copies of the project by `npm run mutate`.
  modulePathIgnorePatterns: ['<rootDir>/reports/'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  reporters: ['default', '<rootDir>/__tests__/support/fault-coverage.mjs'],
  // Most tests wait for processes and disks more than they compute: more workers than cores.
  maxWorkers: availableParallelism() * 2,
  testSequencer: '<rootDir>/__tests__/support/slowest-first.mjs',
  // A deadline is no promise: a machine with several times as much to do meets it too.
  testTimeout: 60_000,
}
