import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals'
import chromium from '@sparticuz/chromium'
import { type Browser, type BrowserContextOptions, chromium as browserType, type Page } from 'playwright-core'
import { until } from './support/until.js'

const PROJECT = resolve(__dirname, '..')
/** Where to look at what the page looks like. */
const SCREENSHOTS = join(tmpdir(), 'example-page-screenshots')
const PHONE = { width: 360, height: 740 }

let demo: ChildProcess
let temporary: string
let url: string
let browser: Browser
const troubles: string[] = []

beforeAll(async () => {
  await mkdir(SCREENSHOTS, { recursive: true })
  temporary = await mkdtemp(join(tmpdir(), 'example-page-'))
  demo = spawn(process.execPath, ['--import', 'tsx', 'example-app/demo.ts'], {
    cwd: PROJECT,
    env: { ...process.env, TMPDIR: temporary, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  url = await addressOf(demo)
  browser = await browserType.launch({
    executablePath: await chromium.executablePath(),
    // In a single process the first page that closes takes the others with it.
    args: chromium.args.filter((arg) => arg !== '--single-process'),
    headless: true,
  })
}, 60_000)

// A browser opens six connections to an address, and every page keeps one for what happens.
afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
})

afterAll(async () => {
  await browser?.close()
  demo?.kill('SIGKILL')
  await rm(temporary, { recursive: true, force: true })
})

describe('the page of the example app', () => {
  it('lets a business in that buys, opens the report to it, and shows the way of the event', async () => {
    const page = await open({ business: 'Bakery Lindt' })
    await headlineIs(page, 'Not let in')
    await text(page, '#reason', 'unknown_business')

    await press(page, 'Buy and pay')
    await headlineIs(page, 'Let in')
    expect(await page.textContent('#explanation')).toContain('The app is purchased.')
    await text(page, '#truth', 'purchased')
    await text(page, '#known', 'purchased')
    await press(page, 'Open the report')
    await page.waitForSelector('.request[data-status="200"]')
    expect(await page.locator('.bars li').count()).toBe(7)
    for (const lane of ['platform', 'delivery', 'token', 'read', 'change', 'decision']) {
      await page.waitForSelector(`#happenings [data-lane="${lane}"]`)
    }
  })

  it('asks again when told to, also where nothing is known', async () => {
    const page = await open({ business: 'Salon Aurora' })
    await text(page, '#reason', 'unknown_business')
    const said = await page.textContent('#said')
    await until('a second has passed', async () => {
      await press(page, 'Check again')
      return (await page.textContent('#said')) !== said
    })
  })

  it('denies it when a payment fails, and lets it in again when the payment is confirmed', async () => {
    const page = await open({ business: 'Bakery Lindt' })
    await press(page, 'Miss a payment')
    await headlineIs(page, 'Not let in')
    await text(page, '#reason', 'not_purchased')
    await press(page, 'Open the report')
    await page.waitForSelector('.request[data-status="402"]')
    expect(await page.locator('.bars').count()).toBe(0)

    await press(page, 'Confirm payment')
    await headlineIs(page, 'Let in')
    await text(page, '#announcement', 'Bakery Lindt: Let in (purchased)')
  })

  it('says of a button that cannot be pressed why', async () => {
    const page = await open({ business: 'Salon Aurora' })
    const cancel = page.getByRole('button', { name: 'Cancel' })
    expect(await cancel.getAttribute('aria-disabled')).toBe('true')
    expect(await cancel.getAttribute('title')).toBe('Nothing has been bought yet')
    await cancel.focus()
    await page.keyboard.press('Enter')
    await text(page, '#note', 'Cancel: not now. Nothing has been bought yet.')
    await text(page, '#truth', 'nothing bought')
  })

  it('can be used with the keyboard alone', async () => {
    const page = await open({})
    await page.waitForSelector('#businesses input:checked')
    await tabTo(page, 'Bakery Lindt')
    await page.keyboard.press('ArrowDown')
    expect(await focused(page)).toBe('Yoga Studio Mitte')
    await tabTo(page, 'Buy, payment fails')
    expect(await ask(page, 'outlineOfFocus')).toBe('solid')
    await page.keyboard.press('Enter')
    await text(page, '#reason', 'not_purchased')
    await tabTo(page, 'Confirm payment')
    await page.keyboard.press('Space')
    await headlineIs(page, 'Let in')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Shift+Tab')
    await tabTo(page, 'Open the report', 'Shift+Tab')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.request[data-status="200"]')
  })

  it('shows that a decision is being made while the platform is slow', async () => {
    const page = await open({ business: 'Radhaus Becker' })
    await press(page, 'Slow it down')
    await press(page, 'Buy and pay')
    await page.waitForSelector('#answer[aria-busy="true"]')
    await page.getByText('Checking…').waitFor()
    await headlineIs(page, 'Let in')
    await page.waitForSelector('#answer[aria-busy="false"]')
    await press(page, 'Make it quick again')
  })

  it('keeps the last answer while the platform is cut off, and loses nothing when the app is killed', async () => {
    const page = await open({ business: 'Café Morgenrot' })
    await press(page, 'Buy and pay')
    await headlineIs(page, 'Let in')

    await press(page, 'Cut the platform off')
    await press(page, 'Miss a payment')
    await page.locator('.trouble').getByText('last read failed').waitFor()
    await headlineIs(page, 'Let in')
    await text(page, '#known', 'purchased')

    await press(page, 'Kill the app')
    await headlineIs(page, 'The app is not running')
    await press(page, 'Bring the platform back')
    await press(page, 'Start the app')
    await headlineIs(page, 'Not let in')
    await text(page, '#known', 'suspended')
  }, 40_000)

  it('fits a phone without scrolling sideways, and can be read by day and by night', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const [name, viewport] of [
        ['phone', PHONE] as const,
        ['desk', { width: 1280, height: 900 }] as const,
      ]) {
        const page = await open({ business: 'Bakery Lindt', viewport, colorScheme })
        await press(page, 'Open the report')
        await page.waitForSelector('.bars')
        await page.evaluate('scrollTo(0, 0)')
        await page.waitForSelector('#announcement.unseen', { state: 'attached' })
        const file = join(SCREENSHOTS, `${name}-${colorScheme}.png`)
        await page.screenshot({ path: file, fullPage: true })
        expect((await stat(file)).size).toBeGreaterThan(10_000)
        expect(await ask(page, 'neededWidth')).toBe(viewport.width)
        expect(await ask(page, 'faintTexts')).toEqual([])
      }
    }
  }, 60_000)

  it('stands still for those who want it to', async () => {
    const page = await open({ business: 'Bakery Lindt', reducedMotion: 'reduce' })
    expect(await ask(page, 'movingElements')).toEqual([])
  })

  it('leaves no error in the console', () => {
    expect(troubles).toEqual([])
  })

  it('ends with Ctrl-C, and leaves no database behind', async () => {
    const ended = once(demo, 'exit')
    demo.kill('SIGINT')
    expect(await ended).toEqual([0, null])
    expect((await readdir(temporary)).filter((name) => name.startsWith('reports-demo-'))).toEqual([])
  })
})

/** The address the demo prints. */
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

async function open({ business, ...options }: BrowserContextOptions & { business?: string }): Promise<Page> {
  const page = await browser.newPage(options)
  page.setDefaultTimeout(15_000)
  page.on('pageerror', (error) => troubles.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(message.text())
  })
  await page.goto(url)
  if (business) await page.getByLabel(business).check()
  return page
}

/** Presses what can be pressed: a button whose last press is still under way takes no other. */
function press(page: Page, name: string): Promise<void> {
  const buttons = page.locator('button:not([aria-disabled="true"]):not([aria-busy])')
  return buttons.and(page.getByText(name, { exact: true })).click()
}

function headlineIs(page: Page, words: string): Promise<void> {
  return text(page, '#headline', words)
}

async function text(page: Page, selector: string, words: string): Promise<void> {
  await page
    .locator(selector)
    .and(page.getByText(words, { exact: true }))
    .waitFor({ state: 'attached' })
}

async function tabTo(page: Page, name: string, key = 'Tab'): Promise<void> {
  for (let pressed = 0; pressed < 40; pressed++) {
    if ((await focused(page)) === name) return
    await page.keyboard.press(key)
  }
  throw new Error(`expected to reach "${name}" with ${key}`)
}

function focused(page: Page): Promise<unknown> {
  return ask(page, 'focusedWords')
}

/** Calls a function of example-page.checks.js in the page. As text, since the page's own rules refuse other scripts. */
async function ask(page: Page, name: string): Promise<unknown> {
  const checks = await readFile(join(__dirname, 'example-page.checks.js'), 'utf8')
  return page.evaluate(`{ ${checks}; pageChecks.${name}() }`)
}
