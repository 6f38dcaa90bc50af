import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startChild } from './child.js'
import { picture } from './picture.js'
import { measureReceiving } from './receiving.js'
import { aims, describeCpu, entitlementRatio, type Results, ratioOf } from './results.js'
import { markdown } from './table.js'

/**
 * `npm run bench [-- <folder>]`: measures the built package beside its peers, in about a minute and a half, and writes
 * what it finds into `bench/results` or the folder given.
 */
async function main(target = join('bench', 'results')) {
  const start = performance.now()
  const say = (text: string) =>
    console.log(`${((performance.now() - start) / 1_000).toFixed(0).padStart(4)} s  ${text}`)

  say('building')
  const build = spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' })
  if (build.status !== 0) throw new Error('the build has failed')

  const folder = temporaryFolder()
  const platform = await startChild('platform.mjs')
  try {
    const platformUrl = `http://127.0.0.1:${platform.port}`
    say('receiving: warming up')
    const receiving = await measureReceiving({ platformUrl, folder, say })
    say('isEntitled')
    const entitlement = await measureEntitlement(platformUrl, folder)
    const results: Results = {
      command: 'npm run bench',
      date: new Date().toISOString().slice(0, 10),
      node: process.versions.node,
      cpu: describeCpu(),
      ...receiving,
      entitlement,
    }
    write(target, results)
    say(`written to ${target}`)
    print(results)
  } finally {
    await platform.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measureEntitlement(platformUrl: string, folder: string): Promise<Results['entitlement']> {
  const secret = 'q8Zr3mW5xK1vT7yB9nL2cD4f'
  const child = await startChild('entitlement.mjs', [platformUrl, join(folder, 'entitlement.db'), secret])
  try {
    return await child.ask<Results['entitlement']>('rounds')
  } finally {
    await child.stop()
  }
}

/** On the disk of the project: where the system's folder for temporary files is in memory, a sync costs nothing. */
function temporaryFolder(): string {
  const parent = join('node_modules', '.cache')
  mkdirSync(parent, { recursive: true })
  if (statfsSync(parent).type === TMPFS)
    throw new Error('the project is on tmpfs: a sync to disk would cost nothing')
  return mkdtempSync(join(parent, 'bench-'))
}

const TMPFS = 0x01021994

function write(target: string, results: Results) {
  mkdirSync(target, { recursive: true })
  const rounded = (_key: string, value: unknown) =>
    typeof value === 'number' ? Math.round(value * 1_000) / 1_000 : value
  writeFileSync(join(target, 'results.json'), `${JSON.stringify(results, rounded, 2)}\n`)
  writeFileSync(join(target, 'results.md'), markdown(results))
  writeFileSync(join(target, 'results.svg'), picture(results))
  // What is committed passes the project's own check.
  spawnSync('npx', ['biome', 'format', '--write', target])
}

function print(results: Results) {
  const median = (peer: 'express' | 'octokit') => {
    const throughput = ratioOf(results, 'marketplace', peer, 'requestsPerSecond').median
    const p99 = ratioOf(results, 'marketplace', peer, 'p99Ms').median
    return `requests/s ${throughput.toFixed(2)} × ${peer}, p99 ${p99.toFixed(2)} ×`
  }
  console.log(
    `\n${median('express')}\n${median('octokit')}\nisEntitled ${entitlementRatio(results).median.toFixed(2)} × a bare get`,
  )
  for (const { aim, reached } of aims(results))
    console.log(`${reached ? 'reached:    ' : 'not reached:'} ${aim}`)
}

main(process.argv[2]).catch((error) => {
  console.error(error)
  process.exitCode = 1
})
