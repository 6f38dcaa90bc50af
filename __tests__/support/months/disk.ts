import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Worker } from 'node:worker_threads'

/**
 * The disk of a world, under the one database file of its app. Import this file before the package, which takes the
 * functions from `node:fs` when it loads. Only one disk is used at a time.
 *
 * A killed process leaves its file unchanged. It also still holds the file, because it is not really dead, so the next
 * process gets a copy. A power cut leaves less: only the synced part of the WAL.
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
    /** Only a separate disk can be filled, and only some users may mount one. */
    canFill,
    isWell: () => isWell,
    /** Sets the disk's behaviour from now on. A failing disk fails every sync. */
    be(how: 'well' | 'fails' | 'is full') {
      isWell = how === 'well'
      disk.isFailing = how === 'fails'
      fs.rmSync(ballast, { force: true })
      if (how === 'is full' && canFill) fill(ballast)
    },
    /** Prepares the files that remain after the end of the process, or after a power cut. */
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
    /** Makes a backup with the given function. Returns its path. */
    async backup(write: (path: string) => Promise<void>): Promise<string> {
      const path = join(folder, `backup-${lives}.db`)
      await write(path)
      return path
    },
    /** While no process uses the database, it becomes the backup. */
    restore(backup: string) {
      for (const name of fs.readdirSync(dirname(place()))) fs.rmSync(join(dirname(place()), name))
      fs.copyFileSync(backup, place())
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

/** Room for the copies of some thirty killed processes: a dead one still holds its files. */
const SMALL_MB = 256

function fill(ballast: string) {
  for (let size = SMALL_MB * 1024 * 1024; size >= 1024; ) {
    try {
      fs.writeFileSync(ballast, Buffer.alloc(size), { flag: 'a' })
    } catch {
      size /= 2
    }
  }
}

/** Whether the disk or a thread is working now, or the event loop has more to do. */
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
    // A write during the sync may or may not be part of it.
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

/** The number of jobs that threads have not answered yet. The package may have one thread for SQLite's slow work. */
let jobsOfThreads = 0
const jobsOf = new WeakMap<Worker, number>()
const { postMessage, terminate } = Worker.prototype

Worker.prototype.postMessage = function (this: Worker, ...args: Parameters<typeof postMessage>) {
  // A thread that shares memory answers through it, not with a message. The compiler of these files is such a thread.
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
