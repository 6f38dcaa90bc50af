/** `npm run evidence`: tries what the package promises, for hours, and writes what came out. */
import { fileURLToPath } from 'node:url'
import { evidence } from './evidence.js'
import { PARTS } from './parts/all.js'

const interrupted = new AbortController()
process.once('SIGINT', () => interrupted.abort())
process.exitCode = await evidence(process.argv.slice(2), {
  root: fileURLToPath(new URL('../..', import.meta.url)),
  parts: PARTS,
  print: console.log,
  signal: interrupted.signal,
})
