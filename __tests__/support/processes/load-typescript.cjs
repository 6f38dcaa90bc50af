/**
 * Loads TypeScript in a process of a test (`node --require load-typescript.cjs`), as Jest loads it, and from a cache on
 * disk. Loading a receiver takes 0.3 s of CPU time, and 0.7 s with tsx. A run of all tests starts hundreds of
 * processes.
 */
const { createHash } = require('node:crypto')
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs')
const Module = require('node:module')
const { tmpdir, userInfo } = require('node:os')
const { join } = require('node:path')

const OPTIONS = { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'commonjs' } }
const VERSION = require('@swc/core/package.json').version
const CACHE = join(tmpdir(), `marketplace-tests-${userInfo().uid}`)
mkdirSync(CACHE, { recursive: true, mode: 0o700 })

const resolveFilename = Module._resolveFilename
/** `./file.js` in a source means `./file.ts`. */
Module._resolveFilename = function resolveTypeScript(request, parent, ...rest) {
  const isOfSource = /^\.{1,2}\/.*\.js$/.test(request) && parent?.filename?.endsWith('.ts')
  return resolveFilename.call(this, isOfSource ? request.replace(/\.js$/, '.ts') : request, parent, ...rest)
}

require.extensions['.ts'] = function loadTypeScript(module, filename) {
  module._compile(compiled(filename), filename)
}

function compiled(filename) {
  const source = readFileSync(filename, 'utf8')
  const key = createHash('sha256').update(`${VERSION}\n${filename}\n${source}`).digest('hex')
  const cached = join(CACHE, `${key}.js`)
  try {
    return readFileSync(cached, 'utf8')
  } catch {
    const { code } = require('@swc/core').transformSync(source, { ...OPTIONS, filename })
    // Written under another name and then renamed, because several processes compile the same file at once.
    writeFileSync(`${cached}.${process.pid}`, code)
    renameSync(`${cached}.${process.pid}`, cached)
    return code
  }
}
