import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Judged, JudgeRequest } from './judged-worlds.js'
import { LATER_SABOTAGES } from './later-sabotages.js'
import type { DocumentedSabotage } from './sabotage.js'
import { SABOTAGED_CALLS } from './sabotaged-calls.js'
import { SABOTAGED_SOURCES } from './sabotaged-sources.js'

export type Judge = 'first' | 'second'

/** Every sabotage of a sentence of the documents. */
export const DOCUMENTED_SABOTAGES: readonly DocumentedSabotage[] = [
  ...SABOTAGED_CALLS,
  ...SABOTAGED_SOURCES,
  ...LATER_SABOTAGES,
]

/** Jest and the command line run in the root of the project, and share no other way to find a file. */
const SUPPORT = resolve('__tests__/support')

/**
 * Lets a sabotage meet every short life of the second oracle, then worlds of seconds, then worlds of hours with its fault,
 * until all judges have noticed it. All have fixed seeds, so the result is the same on each machine.
 */
export async function detect(
  { what, source, fault }: DocumentedSabotage,
  options: { judges?: readonly Judge[]; worlds?: number; months?: number } = {},
) {
  const { judges = ['second'], worlds = 20, months = 2 } = options
  if (source) requireOnce(source)
  const lives = judges.includes('second') ? undefined : []
  const request: JudgeRequest = { what, source, fault, lives, worlds, months }
  const noticed: Partial<Record<Judge, string>> = {}
  const failed: string[] = []
  let made = 0
  const loader = join(SUPPORT, 'processes/load-typescript.cjs')
  const script = `require(${JSON.stringify(join(SUPPORT, 'world/judged-worlds.ts'))})`
  const child = spawn(process.execPath, ['--require', loader, '--eval', script, JSON.stringify(request)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  // A sabotage may make a loop that never ends.
  const tooLong = setTimeout(() => child.kill('SIGKILL'), 20 * 60_000)
  for await (const text of createInterface(child.stdout)) {
    const judged = JSON.parse(text) as Judged
    made++
    if (judged.failed) failed.push(`${judged.world}: ${judged.failed}`)
    for (const judge of ['first', 'second'] as const)
      if (judged[judge] !== undefined) noticed[judge] ??= `${judged.world}: ${judged[judge]}`
    if (judges.every((judge) => noticed[judge])) break
  }
  clearTimeout(tooLong)
  child.kill('SIGKILL')
  return { noticed, failed, made }
}

function requireOnce({ file, from }: NonNullable<DocumentedSabotage['source']>) {
  const places = readFileSync(resolve('lib', file), 'utf8').split(from).length - 1
  if (places !== 1) throw new Error(`${file} has ${places} places that read: ${from}`)
}
