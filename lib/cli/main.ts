#!/usr/bin/env node
import { createRequire } from 'node:module'
import { run } from './program.js'

const { version } = createRequire(import.meta.url)('../../package.json') as { version: string }

// A command goes on without a reader: one that closes early, such as `head`, must not cut off what was asked for.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE') process.exit(70)
})
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
