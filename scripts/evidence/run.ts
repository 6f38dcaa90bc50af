import { type ChildProcess, spawn } from 'node:child_process'
import type { Part, Run, Scope, Step } from './part.js'
import type { Records } from './records.js'

/** A step of a part, and whether its record exists. */
export interface Planned {
  part: Part
  step: Step
  isDone: boolean
}

/** All steps of these parts, in order. */
export function planOf(parts: readonly Part[], scope: Scope, records: Records): Planned[] {
  const done = new Set(records.all().map(({ part, step }) => `${part} ${step}`))
  return parts.flatMap((part) =>
    part.steps(scope).map((step) => ({ part, step, isDone: done.has(`${part.name} ${step.id}`) })),
  )
}

/**
 * Makes the steps that have no record, one after the other, and records each at its end: also one that did not hold, which
 * stands until the code changes. A step that could not do its work has no record, so the next run makes it. Returns whether
 * all could. `signal` ends the running step, of which nothing is left.
 */
export async function makeSteps(options: {
  root: string
  plan: readonly Planned[]
  records: Records
  print(line: string): void
  signal: AbortSignal
}): Promise<boolean> {
  const { root, plan, records, print, signal } = options
  const open = plan.filter(({ isDone }) => !isDone)
  if (open.length < plan.length) print(`${plan.length - open.length} of ${plan.length} steps have a record`)
  let couldAll = true
  let spentMs = 0
  for (const [i, { part, step }] of open.entries()) {
    if (signal.aborted) return false
    const leftMs = i === 0 ? 0 : (spentMs / i) * (open.length - i)
    const left = i === 0 ? '' : `, about ${Math.ceil(leftMs / 60_000)} min left`
    print(`${i + 1} of ${open.length}: ${part.name} ${step.id}${left}`)
    const began = performance.now()
    const run = await output(root, step.command, signal)
    if (signal.aborted) return false
    const tookMs = Math.round(performance.now() - began)
    spentMs += tookMs
    try {
      const outcome = step.outcome(run)
      records.add({ part: part.name, step: step.id, ...outcome, tookMs })
      const words = Object.entries(outcome.figures).map(([figure, value]) => `${figure} ${Math.round(value)}`)
      print(`  ${words.join(', ')} (${Math.round(tookMs / 1_000)} s)`)
      for (const what of outcome.broken) print(`  BROKEN: ${what}`)
    } catch (error) {
      couldAll = false
      print(`  could not be made: ${(error as Error).message}`)
    }
  }
  return couldAll
}

/** Runs Node with these arguments, and ends it and its children at the signal. */
function output(root: string, args: readonly string[], signal: AbortSignal) {
  const child = spawn(process.execPath, args, {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const end = () => endGroup(child)
  signal.addEventListener('abort', end, { once: true })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  return new Promise<Run>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      signal.removeEventListener('abort', end)
      resolve({ code, stdout, stderr })
    })
  })
}

/** A step has a process group of its own. A command that removes files at SIGINT has some seconds for it. */
function endGroup({ pid }: ChildProcess) {
  const send = (name: NodeJS.Signals) => {
    try {
      process.kill(-Number(pid), name)
    } catch {
      // It has ended.
    }
  }
  send('SIGINT')
  setTimeout(send, 5_000, 'SIGKILL').unref()
}
