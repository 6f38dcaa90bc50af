import base from './jest.config.mjs'

/** What takes minutes: `npm run test:long`, apart from the ordinary run. */
/** @type {import('jest').Config} */
export default { ...base, testMatch: ['<rootDir>/__tests__/long/**/*.long.ts'], testTimeout: 600_000 }
