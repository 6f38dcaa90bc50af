import { describe, expect, it } from '@jest/globals'
import type { Page } from 'playwright-core'
import { askPage, axeViolations, troubles, useBrowser } from '../support/processes/browser.js'
import { headlineIs, openDemo, press, startDemo, text, useDemo } from './example-page.demo.js'

const LOOKS = {
  'small phone by night': { viewport: { width: 320, height: 700 }, colorScheme: 'dark' },
  'desk by day': { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
} as const
type Look = keyof typeof LOOKS
/** Each look is measured at all of these widths, from a small phone to a wall. */
const WIDTHS = [320, 390, 1280, 1920]
/** A business for each look, so that the looks do not share purchases. */
const VISITORS = {
  'small phone by night': 'Yoga Studio Mitte',
  'desk by day': 'Salon Aurora',
} as const satisfies Record<Look, string>

useBrowser()
const demo = useDemo()

describe('the page of the example app fits, is readable, and works with screen readers', () => {
  it.each(Object.keys(LOOKS) as Look[])(
    'on a %s: at the start, in a story, with its code open, when denied, and when the app is stopped',
    async (look) => {
      const page = await openDemo(demo().url, { ...LOOKS[look], business: 'Bakery Lindt' })
      await headlineIs(page, 'No purchase known')
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
    const pages = new Map<Look, Page>()
    for (const look of Object.keys(LOOKS) as Look[]) pages.set(look, await openDemo(other.url, LOOKS[look]))
    other.signal('SIGKILL')
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
  const { viewport } = LOOKS[look]
  for (const width of WIDTHS) {
    await page.setViewportSize({ ...viewport, width })
    expect({ what, width: await askPage(page, 'neededWidth') }).toEqual({ what, width })
    expect({ what, width, faint: await askPage(page, 'faintTexts') }).toEqual({ what, width, faint: [] })
  }
  await page.setViewportSize(viewport)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    expect({ what, colorScheme, axe: await axeViolations(page) }).toEqual({ what, colorScheme, axe: [] })
  }
  await page.emulateMedia({ colorScheme: LOOKS[look].colorScheme })
}
