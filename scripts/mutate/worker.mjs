/**
 * Runs one test file of the project in the working directory for each message, in this process. A new process for each
 * file spends three quarters of its CPU time on loading Jest.
 */
import { createHook } from 'node:async_hooks'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { readConfigs } from 'jest-config'
import TestRunner from 'jest-runner'
import Runtime from 'jest-runtime'

const MAX_MEMORY_BYTES = 500e6

process.env.NODE_ENV = 'test'
process.on('disconnect', () => process.exit())

const timers = new Set()
createHook({
  init: (id, type) => void (type === 'Timeout' && timers.add(id)),
  destroy: (id) => timers.delete(id),
}).enable()

const argv = { _: [], $0: '', config: 'jest.config.mjs', runInBand: true, watchman: false }
const { globalConfig, configs } = await readConfigs(argv, [process.cwd()])
const context = await Runtime.createContext(configs[0], { console, maxWorkers: 1, watchman: false })
const before = new Set(timers)
const resourcesBefore = countOfResources()

process.on('message', async (test) => {
  const startedAt = performance.now()
  const passed = await passes(join(process.cwd(), test))
  const tookMs = performance.now() - startedAt
  const canRunMore = !(await hasLeftSomething()) && process.memoryUsage.rss() < MAX_MEMORY_BYTES
  process.send({ passed, tookMs, canRunMore })
})

async function passes(path) {
  const runner = new TestRunner(globalConfig, {})
  let passed = false
  runner.on('test-file-success', ([, { testResults, numFailingTests, testExecError }]) => {
    passed = testResults.length > 0 && numFailingTests === 0 && testExecError === undefined
  })
  const watcher = { isInterrupted: () => false, isWatchMode: () => false }
  await runner.runTests([{ context, path }], watcher, { serial: true })
  return passed
}

/** Whether a timer, a socket or a process of the tests is still there. It could disturb the tests that run next. */
async function hasLeftSomething() {
  // Node reports what has ended one turn of the event loop later.
  for (let turn = 0; turn < 3; turn++) await setImmediate()
  return countOfResources() > resourcesBefore || [...timers].some((id) => !before.has(id))
}

function countOfResources() {
  return process.getActiveResourcesInfo().length
}
