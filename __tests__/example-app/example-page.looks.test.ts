import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import type { Page } from 'playwright-core'
import { onCleanUp } from '../support/clean-up.js'
import { askPage, axeViolations, troubles, useBrowser } from '../support/processes/browser.js'
import { endDemo, headlineIs, openDemo, press, startDemo, text, useDemo } from './example-page.demo.js'

/** The folder for screenshots of the page. */
const SCREENSHOTS = join(tmpdir(), 'example-page-screenshots')
const LOOKS = {
  'small phone by night': { viewport: { width: 320, height: 700 }, colorScheme: 'dark' },
  'phone by day': { viewport: { width: 390, height: 844 }, colorScheme: 'light' },
  'desk by night': { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
  'wall by day': { viewport: { width: 1920, height: 1080 }, colorScheme: 'light' },
} as const
type Look = keyof typeof LOOKS
/** A business for each look, so that the looks do not share purchases. */
const VISITORS = {
  'small phone by night': 'Yoga Studio Mitte',
  'phone by day': 'Café Morgenrot',
  'desk by night': 'Radhaus Becker',
  'wall by day': 'Salon Aurora',
} as const satisfies Record<Look, string>

useBrowser()
const demo = useDemo()
beforeAll(() => mkdir(SCREENSHOTS, { recursive: true }))

describe('the page of the example app fits, is readable, and works with screen readers', () => {
  it.each(Object.keys(LOOKS) as Look[])(
    'on a %s: at the start, in a story, with its code open, when denied, and when the app is stopped',
    async (look) => {
      const page = await openDemo(demo().url, { ...LOOKS[look], business: 'Bakery Lindt' })
      await headlineIs(page, 'Nothing bought yet')
      await isFine(page, look, 'start')

      await page.locator('.cover').first().click()
      await page.locator('#story-press button').first().click()
      await text(page, '#story-count', 'Step 2 of 3')
      await page.locator('#story-press .opener').click()
      await page.locator('.player .code').waitFor()
      await isFine(page, look, 'story')

      await page.getByLabel(VISITORS[look]).check()
      await press(page, 'Buy, payment fails')
      await headlineIs(page, 'Not let in')
      await press(page, 'Open the report')
      await page.waitForSelector('.request')
      await isFine(page, look, 'denied')
      await press(page, 'Kill the app')
      await headlineIs(page, 'The app is stopped')
      await isFine(page, look, 'stopped')
      // The next look needs a running app. A page that closes at once may not have sent the press of this button.
      await press(page, 'Start the app')
      await headlineIs(page, 'Not let in')
    },
  )

  it('while the demo does not answer', async () => {
    const other = await startDemo()
    onCleanUp(() => endDemo(other))
    const pages = new Map<Look, Page>()
    for (const look of Object.keys(LOOKS) as Look[]) pages.set(look, await openDemo(other.url, LOOKS[look]))
    endDemo(other)
    for (const [look, page] of pages) {
      await text(page, '#live', 'Not connected')
      await isFine(page, look, 'lost')
    }
  })
})

describe('the page of the example app', () => {
  it('does not move if the browser prefers reduced motion', async () => {
    const page = await openDemo(demo().url, { business: 'Bakery Lindt' })
    await press(page, 'Buy and pay')
    await page.waitForSelector('.wire[data-lit="now"]')
    expect(await askPage(page, 'movingElements')).toEqual([])
    const moving = await openDemo(demo().url, { reducedMotion: 'no-preference' })
    expect(await askPage(moving, 'movingElements')).not.toEqual([])
  })

  it('causes no error in the console of the browser, except for lost connections', () => {
    expect(troubles.filter((trouble) => !trouble.includes('net::ERR_'))).toEqual([])
  })
})

async function isFine(page: Page, look: Look, what: string) {
  await page.evaluate('scrollTo(0, 0)')
  await page.screenshot({ path: join(SCREENSHOTS, `${look}, ${what}.png`), fullPage: true })
  expect(await askPage(page, 'neededWidth')).toBe(LOOKS[look].viewport.width)
  expect(await askPage(page, 'faintTexts')).toEqual([])
  expect(await axeViolations(page)).toEqual([])
}
