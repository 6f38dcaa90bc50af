import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'

/**
 * The disk of a world, under the one database file of its app. To be imported before the package, which takes the
 * functions from `node:fs` when it is loaded. Only one disk is in use at a time.
 *
 * A process that is killed leaves its file as it is, and still holds it, because it is not really dead: so the next one
 * finds a copy. A power cut leaves less: only the synced part of the WAL.
 */
export function createDisk({ isSmall = false }) {
  const folder = fs.mkdtempSync(join(fs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'months-'))
  let lives = 0
  let isWell = true
  const place = () => join(folder, String(lives), 'marketplace.db')
  const canFill = isSmall && mount(folder)
  const ballast = join(folder, 'ballast')
  fs.mkdirSync(join(folder, '0'))
  inUse = { isFailing: false, syncedBytes: 0, wal: () => `${place()}-wal` }
  const disk = inUse

  return {
    path: place,
    /** Only a disk of its own can be filled, and only some users may mount one. */
    canFill,
    isWell: () => isWell,
    /** From now on. A disk that fails fails every sync. */
    be(how: 'well' | 'fails' | 'is full') {
      isWell = how === 'well'
      disk.isFailing = how === 'fails'
      fs.rmSync(ballast, { force: true })
      if (how === 'is full' && canFill) fill(ballast)
    },
    /** The files that the end of the process, or of the power, leaves. */
    leave({ power }: { power: boolean }) {
      const from = join(folder, String(lives))
      const to = join(folder, String(++lives))
      fs.mkdirSync(to)
      for (const name of fs.readdirSync(from)) {
        if (name.endsWith('-shm')) continue
        fs.copyFileSync(join(from, name), join(to, name))
        const isCut = power && name.endsWith('-wal')
        if (isCut && fs.statSync(join(to, name)).size > disk.syncedBytes) {
          fs.truncateSync(join(to, name), disk.syncedBytes)
        }
      }
    },
    remove() {
      if (canFill) execFileSync('umount', ['-l', folder])
      fs.rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type Disk = ReturnType<typeof createDisk>

function mount(folder: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SMALL_MB}m`, 'tmpfs', folder], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const SMALL_MB = 96

function fill(ballast: string) {
  for (let size = SMALL_MB * 1024 * 1024; size >= 1024; ) {
    try {
      fs.writeFileSync(ballast, Buffer.alloc(size), { flag: 'a' })
    } catch {
      size /= 2
    }
  }
}

/** Whether the disk or a thread is at work just now, or the event loop has more to do. */
export function isAtWork(): boolean {
  return (
    jobsOfThreads > 0 ||
    process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq') || name === 'Immediate')
  )
}

let inUse: { isFailing: boolean; syncedBytes: number; wal(): string } | undefined

type Done = (error: NodeJS.ErrnoException | null) => void

function watched(name: 'fdatasync' | 'fsync') {
  const real = fs[name]
  return (file: number, done: Done) => {
    const disk = inUse
    if (disk?.isFailing) {
      setImmediate(() => done(Object.assign(new Error(`EIO: i/o error, ${name}`), { code: 'EIO' })))
      return
    }
    // A write during the sync may be in it or not.
    const { ino, size } = fs.fstatSync(file)
    const isWal = disk && fs.existsSync(disk.wal()) && fs.statSync(disk.wal()).ino === ino
    real(file, (error) => {
      if (isWal && !error) disk.syncedBytes = size
      done(error)
    })
  }
}

fs.fdatasync = watched('fdatasync') as typeof fs.fdatasync
fs.fsync = watched('fsync') as typeof fs.fsync

/** Jobs that were given to threads and not answered yet: the package may have one for SQLite's slow work. */
let jobsOfThreads = 0
const jobsOf = new WeakMap<Worker, number>()
const { postMessage, terminate } = Worker.prototype

Worker.prototype.postMessage = function (this: Worker, ...args: Parameters<typeof postMessage>) {
  // A thread that shares memory answers by it, not by a message: the compiler of these files, for one.
  const isShared = Object.values(Object(args[0])).some((value) => value instanceof SharedArrayBuffer)
  if (isShared) return postMessage.apply(this, args)
  if (!jobsOf.has(this)) {
    this.on('message', () => answered(this, 1))
    this.on('exit', () => answered(this, jobsOf.get(this) ?? 0))
  }
  jobsOf.set(this, (jobsOf.get(this) ?? 0) + 1)
  jobsOfThreads++
  postMessage.apply(this, args)
}

Worker.prototype.terminate = async function (this: Worker) {
  jobsOfThreads++
  try {
    return await terminate.call(this)
  } finally {
    jobsOfThreads--
  }
}

function answered(worker: Worker, jobs: number) {
  jobsOf.set(worker, (jobsOf.get(worker) ?? 0) - jobs)
  jobsOfThreads -= jobs
}
