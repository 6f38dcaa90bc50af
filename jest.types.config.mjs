import base from './jest.config.mjs'

/** Types under every TypeScript, which it downloads: `npm run test:types`. */
/** @type {import('jest').Config} */
export default { ...base, testMatch: ['<rootDir>/__tests__/types/matrix.ts'], testTimeout: 300_000 }
