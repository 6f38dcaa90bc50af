import fs from 'node:fs'
import { dirname, join, relative } from 'node:path'
import threads from 'node:worker_threads'
import Libsql from 'libsql'
import { onCleanUp, temporaryFolder } from '../clean-up.js'
import { createRandom } from '../world/random.js'

/**
 * Records what of the files in a folder is certainly on disk while this process writes them: what a successful sync has
 * covered that began after the write. Import this file before the package, which takes functions of `node:fs` when it loads.
 *
 * It sees every sync of the package's own. Those of SQLite follow from its rules (https://sqlite.org/wal.html) and from the
 * setting `synchronous` of the connection: unless it is off, a checkpoint syncs the WAL before and the database after it, and
 * the first commit after a complete one syncs the new header of the WAL.
 */
export function recordDisk(folder: string) {
  const recording = createRecording(folder)
  active = recording
  onCleanUp(() => {
    active = undefined
    recording.close()
  })
  return recording
}

/** The path of a folder's copy, as the next start may find it after a power cut. */
interface Image {
  folder: string
  /** For the message of a failure. */
  of: string
}

let active: ReturnType<typeof createRecording> | undefined
let cuts = 0

const SECTOR = 512
const PAGE = 4_096
const FRAME_HEADER = 24
const WAL_HEADER = 32

interface File {
  /** Stays open: closing a descriptor of a database would release SQLite's locks on it, and a free inode is used again. */
  descriptor: number
  synced: Buffer
  /** Pages of a sync that failed, as they were: the system holds them to be written, and no later sync writes them. */
  lost: Map<number, Buffer>
}

function createRecording(folder: string) {
  const files = new Map<number, File>()
  const watchers: (() => void)[] = []
  let checkpoints = 0

  function fileAt(path: string): [inode: number, file: File] {
    const { ino } = fs.statSync(path)
    const file = files.get(ino) ?? {
      descriptor: fs.openSync(path, 'r'),
      synced: Buffer.alloc(0),
      lost: new Map(),
    }
    files.set(ino, file)
    return [ino, file]
  }

  function namesIn(within: string): [path: string, inode: number][] {
    return fs
      .readdirSync(within, { withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.endsWith('-shm'))
      .map(({ name }) => [join(within, name), fileAt(join(within, name))[0]])
  }

  const folders = () => [
    folder,
    ...fs
      .readdirSync(folder, { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name)),
  ]
  const currentNames = () => new Map(folders().flatMap(namesIn))
  // What is there already is on disk.
  let syncedNames = currentNames()
  for (const file of files.values()) file.synced = contentOf(file.descriptor)

  const databases = () =>
    [...currentNames().keys()].filter((path) => fs.existsSync(`${path}-wal`) || isDatabase(path))
  const isDatabase = (path: string) =>
    contentOf(fileAt(path)[1].descriptor, MAGIC.length).toString('latin1') === MAGIC
  const walOf = (path: string) => (fs.existsSync(`${path}-wal`) ? fileAt(`${path}-wal`)[1] : undefined)

  /** A new header of the WAL was synced with the first commit after it. */
  function headerSynced(path: string) {
    const wal = walOf(path)
    if (!wal) return
    const header = contentOf(wal.descriptor, WAL_HEADER)
    if (header.length < WAL_HEADER || saltsOf(header).equals(saltsOf(wal.synced))) return
    isSynced(wal, over(wal.synced, header))
  }

  function databaseSynced(path: string) {
    const [, file] = fileAt(path)
    isSynced(file, contentOf(file.descriptor))
  }

  function isSynced(file: File, content: Buffer) {
    for (const [page, bytes] of file.lost) {
      const [from, to] = [page * PAGE, page * PAGE + bytes.length]
      if (content.subarray(from, to).equals(bytes))
        file.synced.copy(content.fill(0, from, to), from, from, to)
      else file.lost.delete(page)
    }
    file.synced = content
  }

  function isLost(file: File, content: Buffer) {
    for (let page = 0; page * PAGE < content.length; page++) {
      const bytes = content.subarray(page * PAGE, (page + 1) * PAGE)
      if (!bytes.equals(file.synced.subarray(page * PAGE, page * PAGE + bytes.length)))
        file.lost.set(page, bytes)
    }
  }

  return {
    folder,

    /** Call it when a sync begins, and the result when it has ended. What is written meanwhile may not be part of it. */
    sync(descriptor: number): (failed?: unknown) => void {
      const stat = fs.fstatSync(descriptor)
      if (stat.isDirectory()) {
        const path = folders().find((each) => fs.statSync(each).ino === stat.ino)
        const names = path === undefined ? [] : namesIn(path)
        return (failed) => {
          if (failed) return
          const others = [...syncedNames].filter(([name]) => dirname(name) !== path)
          if (path !== undefined) syncedNames = new Map([...others, ...names])
        }
      }
      currentNames()
      const file = files.get(stat.ino)
      const content = file && contentOf(file.descriptor)
      return (failed) => {
        if (file && content) (failed ? isLost : isSynced)(file, content)
      }
    },

    /** Call it when the package writes into a file through `node:fs`. */
    wrote(descriptor: number, bytes: number, at: number) {
      const file = files.get(fs.fstatSync(descriptor).ino)
      for (let page = Math.floor(at / PAGE); page * PAGE < at + bytes; page++) file?.lost.delete(page)
    },

    /** Call it before a statement of this thread, and the result after it. */
    statement(text: string, syncs: boolean): () => void {
      const before = /wal_checkpoint|journal_mode|^close$/.test(text)
        ? [...currentNames().keys()].map((path) => {
            const [wal, bytes] = [walOf(path), contentOf(fileAt(path)[1].descriptor)]
            return { path, bytes, wal, log: wal && contentOf(wal.descriptor) }
          })
        : []
      return () => {
        if (!syncs) return
        for (const { path, bytes, wal, log } of before) {
          if (
            !fs.existsSync(path) ||
            !isDatabase(path) ||
            contentOf(fileAt(path)[1].descriptor).equals(bytes)
          )
            continue
          if (wal && log) isSynced(wal, log)
          databaseSynced(path)
        }
        if (checkpoints === 0) for (const path of databases()) headerSynced(path)
      }
    },

    /** The same for a statement of SQLite's thread on the database at `path`; the result takes its rows. */
    statementOfThread(path: string, text: string): (rows: unknown[], syncs: boolean) => void {
      const isCheckpoint = text.includes('wal_checkpoint')
      const wal = walOf(path)
      const log = isCheckpoint && wal ? contentOf(wal.descriptor) : undefined
      if (isCheckpoint) checkpoints++
      return (rows, syncs) => {
        if (isCheckpoint) checkpoints--
        if (!syncs || !fs.existsSync(path)) return
        if (log && wal) {
          const now = contentOf(wal.descriptor)
          const { checkpointed = 0 } = (rows[0] ?? {}) as { checkpointed?: number }
          const isSame = now.length >= WAL_HEADER && saltsOf(now).equals(saltsOf(log))
          const frames = isSame ? checkpointed * (FRAME_HEADER + now.readUInt32BE(8)) : 0
          // A sync of our own may have covered a newer log meanwhile.
          if (saltsOf(wal.synced).equals(saltsOf(log)))
            isSynced(wal, isSame ? over(wal.synced, now.subarray(0, WAL_HEADER + frames)) : log)
          databaseSynced(path)
        }
        headerSynced(path)
      }
    },

    /** Whether SQLite's thread moves the WAL into the database, whose syncs are known afterwards. */
    isMoving: () => checkpoints > 0,

    /** Calls `watcher` after each new name of a file. */
    onNamed: (watcher: () => void) => void watchers.push(watcher),
    named() {
      for (const watcher of watchers) watcher()
    },

    /**
     * What the disk may hold if the power fails now: with the names that were synced, with those of now, or with both,
     * because the end of a name may reach the disk late; and with nothing of the content that was not synced, or a random
     * part of it in sectors. Of what a checkpoint writes into a database nothing is needed until its end.
     */
    cut(): Image[] {
      const random = createRandom(++cuts)
      const to = temporaryFolder()
      const now = currentNames()
      const names = {
        synced: syncedNames,
        present: now,
        'synced and present': new Map([...syncedNames, ...now]),
      }
      return Object.entries(names).flatMap(([which, inodes]) =>
        ['nothing', 'a part'].map((more) => {
          const image = join(to, `${which}, ${more}`)
          fs.mkdirSync(image)
          for (const [path, inode] of inodes) {
            const { descriptor, synced } = files.get(inode) as File
            const target = join(image, relative(folder, path))
            fs.mkdirSync(dirname(target), { recursive: true })
            const isTorn = more === 'a part' && !fs.existsSync(`${path}-wal`) && !path.endsWith('-lock')
            fs.writeFileSync(target, isTorn ? tear(synced, contentOf(descriptor), random) : synced)
          }
          return { folder: image, of: `the ${which} names, and ${more} of what was not synced (cut ${cuts})` }
        }),
      )
    },

    close() {
      for (const { descriptor } of files.values()) fs.closeSync(descriptor)
    },
  }
}

const MAGIC = 'SQLite format 3\0'
const saltsOf = (wal: Buffer) => wal.subarray(16, 24)

/** `before` with the beginning `start`. */
const over = (before: Buffer, start: Buffer) => Buffer.concat([start, before.subarray(start.length)])

function tear(synced: Buffer, memory: Buffer, random: ReturnType<typeof createRandom>): Buffer {
  const torn = Buffer.alloc(random.pick([synced.length, memory.length]))
  synced.copy(torn)
  for (let at = 0; at < torn.length; at += SECTOR)
    if (at < memory.length && random.chance(0.7)) memory.copy(torn, at, at, at + SECTOR)
  return torn
}

function contentOf(descriptor: number, bytes = fs.fstatSync(descriptor).size): Buffer {
  const content = Buffer.alloc(bytes)
  return content.subarray(0, fs.readSync(descriptor, content, 0, bytes, 0))
}

type Done = (error: NodeJS.ErrnoException | null) => void

for (const name of ['fsync', 'fdatasync'] as const) {
  const real = fs[name]
  fs[name] = ((file: number, done: Done) => {
    const synced = active?.sync(file)
    real(file, (error) => {
      synced?.(error)
      done(error)
    })
  }) as typeof real
}

const { write } = fs
fs.write = ((...given: Parameters<typeof write>) => {
  const [file, , , bytes, at] = given as unknown[] as number[]
  active?.wrote(file as number, bytes as number, at as number)
  return write(...given)
}) as unknown as typeof fs.write
// What `promisify` returns for it is named there.
Object.defineProperties(fs.write, Object.getOwnPropertyDescriptors(write))

const { open, link, rename, rm } = fs.promises
fs.promises.open = async (...given) => {
  const handle = await open(...given)
  for (const name of ['sync', 'datasync'] as const) {
    const real = handle[name].bind(handle)
    handle[name] = async () => {
      const synced = active?.sync(handle.fd)
      await real()
      synced?.()
    }
  }
  return handle
}
const named =
  <Given extends unknown[]>(real: (...given: Given) => Promise<void>) =>
  async (...given: Given) => {
    await real(...given)
    active?.named()
  }
Object.assign(fs.promises, { link: named(link), rename: named(rename), rm: named(rm) })

const OFF = /pragma\s+synchronous\s*=\s*(off|0)\b/i
const ON = /pragma\s+synchronous\s*=/i
const unsynced = new WeakSet<object>()

interface Database {
  exec(text: string): unknown
  close(): unknown
}

function watchDriver({ prototype }: { prototype: Database }) {
  const { exec, close } = prototype
  prototype.exec = function (this: Database, text: string) {
    if (OFF.test(text)) unsynced.add(this)
    else if (ON.test(text)) unsynced.delete(this)
    const done = active?.statement(text, !unsynced.has(this))
    const result = exec.call(this, text)
    done?.()
    return result
  }
  prototype.close = function (this: Database) {
    const done = active?.statement('close', !unsynced.has(this))
    const result = close.call(this)
    done?.()
    return result
  }
}

watchDriver(Libsql as unknown as { prototype: Database })
const builtin = process.getBuiltinModule?.('node:sqlite' as 'node:fs') as unknown as
  | { DatabaseSync: { prototype: Database } }
  | undefined
if (builtin) watchDriver(builtin.DatabaseSync)

/** The package's thread answers each statement with its rows; one more statement asks for its setting. */
threads.Worker = class extends threads.Worker {
  constructor(...given: ConstructorParameters<typeof threads.Worker>) {
    super(...given)
    const path: unknown = given[1]?.workerData?.path
    if (typeof path !== 'string') return
    const running = new Map<unknown, ReturnType<ReturnType<typeof createRecording>['statementOfThread']>>()
    let syncs = true
    this.on('message', ({ job, rows }) => {
      if (job === 'synchronous') syncs = rows?.[0].synchronous > 0
      else running.get(job)?.(rows ?? [], syncs && rows !== undefined)
      running.delete(job)
    })
    const { postMessage, terminate } = this
    this.terminate = async () => {
      // Its connection may be the last one, whose end is a checkpoint too.
      const done = active && path.startsWith(active.folder) ? active.statement('close', syncs) : undefined
      const code = await terminate.call(this)
      done?.()
      return code
    }
    this.postMessage = (message: { job: unknown; statement: string }) => {
      if (active && path.startsWith(active.folder)) {
        postMessage.call(this, { job: 'synchronous', statement: 'pragma synchronous' })
        running.set(message.job, active.statementOfThread(path, message.statement))
      }
      postMessage.call(this, message)
    }
  }
}
