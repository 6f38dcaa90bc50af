import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Whether system calls can be traced on this machine. */
export function canTrace(): boolean {
  return spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0
}

/** The command to put in front of another one; it writes the input of `readTrace`. */
export function traced(file: string): string[] {
  const calls = 'pwrite64,pwritev,write,writev,sendto,sendmsg,fdatasync,fsync'
  // -xx: data as hex digits, so that it can be read back; -y: descriptors with their files.
  return ['strace', '-f', '--seccomp-bpf', '-y', '-xx', '-s', '8192', '-e', `trace=${calls}`, '-o', file]
}

/** A system call that ended; `result` is negative when it failed. `begun` and `ended` are positions in the order in which the kernel saw all calls. */
export interface SystemCall {
  name: string
  /** The file of its descriptor. */
  file: string
  data: Buffer
  /** Its last argument, if that is a number: the offset of `pwrite64`, the length of `ftruncate`. */
  last: number
  begun: number
  ended: number
  result: number
}

export function readTrace(file: string): SystemCall[] {
  const open = new Map<string, { text: string; begun: number }>()
  const calls: SystemCall[] = []
  for (const [at, line] of readFileSync(file, 'latin1').split('\n').entries()) {
    const [, thread = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    const unfinished = /^(.*) <unfinished \.\.\.>$/.exec(rest)
    if (unfinished) {
      open.set(thread, { text: unfinished[1] as string, begun: at })
      continue
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)
    const begun = resumed ? open.get(thread) : { text: '', begun: at }
    if (!begun) continue
    const call = parse(begun.text + (resumed ? resumed[1] : rest))
    if (call) calls.push({ ...call, begun: begun.begun, ended: at })
  }
  return calls
}

function parse(text: string): Omit<SystemCall, 'begun' | 'ended'> | undefined {
  const [, name, file = '', rest = '', result] = /^(\w+)\(\d+<([^>]*)>(.*)\) += (-?\d+)/.exec(text) ?? []
  if (name === undefined) return undefined
  const data = Buffer.concat([...rest.matchAll(/"([^"]*)"/g)].map(([, hex = '']) => unhex(hex)))
  return {
    name,
    file: /\\x/.test(file) ? unhex(file).toString() : file,
    data,
    last: Number(/(\d+)$/.exec(rest)?.[1]),
    result: Number(result),
  }
}

function unhex(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex')
}
