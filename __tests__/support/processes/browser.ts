import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll } from '@jest/globals'
import chromium from '@sparticuz/chromium'
import { type Browser, type BrowserContextOptions, chromium as browserType, type Page } from 'playwright-core'
import { onCleanUp } from '../clean-up.js'

/** The errors that the pages of a test file logged to their consoles. */
export const troubles: string[] = []

/**
 * In a single-process browser, closing the first page closes all other pages too. A simulated graphics card takes half of
 * the CPU time of these tests, and no page here needs one. The browser keeps pages of other origins apart, as those of
 * people do.
 */
const ARGS = [
  ...chromium.args.filter(
    (arg) =>
      !/^--(single-process|disable-web-security|in-process-gpu|use-gl|use-angle|enable-unsafe-swiftshader)/.test(
        arg,
      ),
  ),
  '--disable-gpu',
  '--disable-software-rasterizer',
]

let browser: Browser

/**
 * Starts a real browser for the test file that calls this. Each page is closed after its test, before the test's
 * server.
 */
export function useBrowser() {
  beforeAll(async () => {
    browser = await browserType.launch({
      executablePath: await unpacked(),
      args: ARGS,
      headless: true,
    })
  }, 180_000)
  afterAll(() => browser?.close())
}

/**
 * The path of the browser, which the first test on a machine unpacks: into a folder of its own, which then gets its name. Nobody
 * starts a browser that another test file still writes, or of which an interrupted run has left half.
 */
async function unpacked(): Promise<string> {
  const root = dirname(dirname(dirname(require.resolve('@sparticuz/chromium'))))
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const folder = join(tmpdir(), `marketplace-webhooks-chromium-${version}`)
  if (!existsSync(folder)) {
    const made = await mkdtemp(`${folder}-`)
    const unpack = "import('@sparticuz/chromium').then(({ default: it }) => it.executablePath())"
    await promisify(execFile)(process.execPath, ['--eval', unpack], {
      cwd: __dirname,
      env: { ...process.env, TMPDIR: made, TEMP: made },
    })
    // Another test file may have been faster.
    await rename(made, folder).catch(() => rm(made, { recursive: true }))
  }
  return join(folder, 'chromium')
}

export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext(options)
  onCleanUp(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  page.on('pageerror', (error) => troubles.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(message.text())
  })
  await page.goto(url)
  return page
}

/**
 * Calls a function of example-page.checks.js in the page. The call is passed as text, because the page's own rules
 * refuse other scripts.
 */
export function askPage(page: Page, name: string): Promise<unknown> {
  return page.evaluate(callOf(name))
}

/** Loads the page again, and calls the function as soon as its document is there. */
export async function askPageFirst(page: Page, name: string) {
  await page.addInitScript(`addEventListener('DOMContentLoaded', () => ${callOf(name)})`)
  await page.reload()
}

function callOf(name: string): string {
  const checks = readFileSync(join(__dirname, '..', '..', 'example-app', 'example-page.checks.js'), 'utf8')
  return `{ ${checks}; pageChecks.${name}() }`
}

/** The violations that axe-core finds, one line each. */
export async function axeViolations(page: Page): Promise<string[]> {
  const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
  return page.evaluate(
    `${axe}; axe.run().then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html)))`,
  )
}
