#!/usr/bin/env node
import { createRequire } from 'node:module'
import { run } from './program.js'

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string }

// A reader that closes early, such as `head`, is not an error. Without a reader of its errors a command goes on.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 70))
process.stderr.on('error', () => {})

const exitCode = await run(process.argv.slice(2), {
  version,
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
})
// The process is ended explicitly, because a pool in the config file would keep the process alive.
process.stdout.write('', () => process.exit(exitCode))
