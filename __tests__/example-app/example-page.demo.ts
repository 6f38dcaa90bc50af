import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, jest } from '@jest/globals'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { askPage, openPage } from '../support/processes/browser.js'

/** A press or an answer takes a tenth of a second. On a machine that does much else the browser takes a hundred times as long. */
const SLOWEST_MS = 45_000
// Tests of a page do some dozen things, one after the other.
jest.setTimeout(240_000)

export interface Demo {
  process: ChildProcess
  url: string
  /** The folder of its database. */
  temporary: string
}

/** Starts `npm run demo` in a process of its own. Port 0 takes a free one. */
export async function startDemo(port = 0): Promise<Demo> {
  const temporary = mkdtempSync(join(tmpdir(), 'example-page-'))
  const demo = spawn(process.execPath, ['--import', 'tsx', 'example-app/demo/main.ts'], {
    cwd: resolve(__dirname, '..', '..'),
    env: { ...process.env, TMPDIR: temporary, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return { process: demo, url: await addressOf(demo), temporary }
}

/** Ends the demo at once. Its app ends too, and its database is removed. */
export function endDemo({ process: demo, temporary }: Demo) {
  demo.kill('SIGKILL')
  rmSync(temporary, { recursive: true, force: true })
}

/** One demo for the test file that calls this. */
export function useDemo(): () => Demo {
  let demo: Demo
  beforeAll(async () => {
    demo = await startDemo()
  }, 180_000)
  afterAll(() => demo && endDemo(demo))
  return () => demo
}

/** Opens the page; without motion unless requested, so that nothing plays slowly. */
export async function openDemo(
  url: string,
  { business, ...options }: BrowserContextOptions & { business?: string } = {},
): Promise<Page> {
  const page = await openPage(url, { reducedMotion: 'reduce', ...options })
  page.setDefaultTimeout(SLOWEST_MS)
  await text(page, '#live', 'Connected')
  if (business) await page.getByLabel(business).check()
  return page
}

/** Presses a button after its previous press has ended. */
export function press(page: Page, name: string): Promise<void> {
  const buttons = page.locator('.freely button:not([aria-disabled="true"]):not([aria-busy])')
  return buttons.and(page.getByText(name, { exact: true })).click()
}

export async function text(page: Page, selector: string, words: string): Promise<void> {
  await page
    .locator(selector)
    .and(page.getByText(words, { exact: true }))
    .waitFor({ state: 'attached' })
}

export function headlineIs(page: Page, words: string): Promise<void> {
  return text(page, '#headline', words)
}

/** Moves the focus with the keyboard to the element with this name. */
export async function tabTo(page: Page, name: string, key = 'Tab'): Promise<void> {
  for (let pressed = 0; pressed < 60; pressed++) {
    if ((await askPage(page, 'focusedWords')) === name) return
    await page.keyboard.press(key)
  }
  throw new Error(`expected to reach "${name}" with ${key}`)
}

/** The address that the demo prints. */
function addressOf({ stdout }: ChildProcess): Promise<string> {
  return new Promise((found, failed) => {
    let printed = ''
    stdout?.on('data', (chunk) => {
      printed += chunk
      const [, address] = /^Open (\S+)$/m.exec(printed) ?? []
      if (address) found(address)
    })
    stdout?.on('end', () => failed(new Error(`expected an address, and the demo printed: ${printed}`)))
  })
}
