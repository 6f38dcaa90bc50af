import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, statfsSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism, cpus, tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const BENCH = fileURLToPath(new URL('..', import.meta.url))
export const PROJECT = join(BENCH, '..')

/** The path of a program, or undefined. */
export function findProgram(name) {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/**
 * The cores for the server, the load generator and the databases, in the form that `taskset` takes. The server has a
 * core of its own; with two cores the databases share the other one with the load generator.
 */
export function coresOf(count = availableParallelism()) {
  if (count < 2 || !findProgram('taskset')) return undefined
  return { server: '0', load: '1', database: count > 2 ? `2-${count - 1}` : '1' }
}

export function inWords(cores) {
  if (!cores) return 'not pinned: `taskset` or a second core is missing, so the spread is wider'
  return `server on core ${cores.server}, load generator on core ${cores.load}, databases on core ${cores.database}`
}

/** A command that runs `program` on these cores. */
export function pinned(cores, program, args) {
  return cores ? ['taskset', ['-c', cores, program, ...args]] : [program, args]
}

/**
 * The versions of Node to measure: the one in use, and Node 24 from the package `node-<platform>-<arch>`, on which
 * speed is judged. Only one of them if they are the same.
 */
export function runtimes() {
  const own = {
    id: `node-${major(process.versions.node)}`,
    path: process.execPath,
    version: process.versions.node,
  }
  const judged = packagedNode()
  if (!judged) return { all: [own], judged: own }
  if (major(judged.version) === major(own.version)) return { all: [own], judged: own }
  return { all: [judged, own], judged }
}

function packagedNode() {
  const name = `node-${process.platform}-${process.arch}`
  try {
    const folder = dirname(createRequire(join(BENCH, 'package.json')).resolve(`${name}/package.json`))
    const path = join(folder, 'bin', 'node')
    const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
    const version = stdout.trim().slice(1)
    return { id: `node-${major(version)}`, path, version }
  } catch {
    return undefined
  }
}

export function major(version) {
  return Number(version.split('.')[0])
}

export function describeCpu() {
  return `${availableParallelism()} × ${cpus()[0]?.model.trim() ?? 'unknown CPU'}`
}

/**
 * A new folder on a disk, because a sync costs nothing if files are in memory. Databases of another user must be able
 * to reach it.
 */
export function folderOnDisk() {
  const cache = join(BENCH, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  const parent = [cache, tmpdir(), '/var/tmp'].find(
    (path) => existsSync(path) && !isInMemory(path) && isOpenToAll(path),
  )
  const path = mkdtempSync(join(parent ?? tmpdir(), 'bench-'))
  chmodSync(path, 0o755)
  return { path, isOnDisk: parent !== undefined }
}

const TMPFS = 0x01021994

function isInMemory(path) {
  return statfsSync(path).type === TMPFS
}

function isOpenToAll(path) {
  if (process.getuid?.() !== 0) return true
  return (statSync(path).mode & 0o001) !== 0 && (path === dirname(path) || isOpenToAll(dirname(path)))
}
