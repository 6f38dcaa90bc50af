import { resolve } from 'node:path'
import { beforeAll, jest } from '@jest/globals'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { forWholeFile, temporaryFolder } from '../support/clean-up.js'
import { askPage, askPageFirst, openPage } from '../support/processes/browser.js'
import { type RunningProcess, startProcess } from '../support/processes/running-process.js'

/** A press or an answer takes a tenth of a second. On a machine that does much else the browser takes a hundred times as long. */
const SLOWEST_MS = 45_000
// Tests of a page do some dozen things, one after the other.
jest.setTimeout(240_000)

export interface Demo extends RunningProcess {
  url: string
  /** The folder of its database. */
  temporary: string
}

/** Starts `npm run demo` in a process of its own. Port 0 takes a free one. */
export async function startDemo(port = 0): Promise<Demo> {
  const temporary = temporaryFolder()
  const running = startProcess(process.execPath, ['--import', 'tsx', 'example-app/demo/main.ts'], {
    cwd: resolve(__dirname, '..', '..'),
    env: { ...process.env, TMPDIR: temporary, PORT: String(port) },
  })
  await running.prints(OPEN)
  return { ...running, url: OPEN.exec(running.stdout())?.[1] ?? '', temporary }
}

const OPEN = /^Open (\S+)$/m

/** One demo for the test file that calls this. */
export function useDemo(): () => Demo {
  let demo: Demo
  beforeAll(async () => {
    demo = await forWholeFile(() => startDemo())
  }, 180_000)
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

/** Records the pictures of the page, from its first one on. */
export async function watchPictures(page: Page): Promise<void> {
  await askPageFirst(page, 'watchPicture')
  await text(page, '#live', 'Connected')
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
