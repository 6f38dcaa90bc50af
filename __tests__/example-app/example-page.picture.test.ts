import { describe, expect, it } from '@jest/globals'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { askPage, troubles, useBrowser } from '../support/processes/browser.js'
import { headlineIs, openDemo, press, text, useDemo, watchPictures } from './example-page.demo.js'

useBrowser()
const demo = useDemo()

const PHONE = { width: 390, height: 844 }

describe('no picture of the demo contradicts itself', () => {
  it.each([
    ['A customer pays', 'Bakery Lindt'],
    ['A customer misses a payment', 'Yoga Studio Mitte'],
    ['The app dies', 'Café Morgenrot'],
  ])(
    'while "%s" is played, on its page, on one beside it, and on one opened in the middle',
    async (title, business) => {
      const page = await watched({ viewport: PHONE })
      const beside = await watched({ business, reducedMotion: 'reduce' })
      await page.locator('.cover', { hasText: title }).click()
      const all = [page, beside]
      do {
        const before = await page.textContent('#story-count')
        await page.locator('#story-press .primary:not([aria-busy])').click()
        if (all.length === 2) all.push(await watched({ business }))
        await page
          .locator('#story-count')
          .filter({ hasNotText: before ?? '' })
          .waitFor()
      } while ((await page.textContent('#story-count')) !== 'The end')
      for (const each of all) await text(each, '#strip-answer', 'Report open')
      await agree(all)
      const captions = await seen(page, 'caption')
      expect(captions.length).toBeGreaterThan(5)
      // The handler is drawn as called when the package shows the state that it is called with.
      expect(captions.filter((each) => each.includes('for an earlier change'))).toEqual([])
    },
  )

  it('with each button, pressed before the last webhook has been drawn', async () => {
    const page = await watched({ business: 'Salon Aurora' })
    for (const name of [
      'Buy and pay',
      'Open the report',
      'Miss a payment',
      'Confirm payment',
      'Open the report',
      'Check again',
      'Cancel',
      'Open the report',
      'Buy, payment fails',
      'Confirm payment',
      'Install',
      'Uninstall',
    ])
      await press(page, name)
    await text(page, '#strip-truth', 'canceled')
    await agree([page])
  })

  it('while the platform is cut off or slow, and the app is killed and starts again', async () => {
    const page = await watched({ business: 'Radhaus Becker' })
    const beside = await watched({ business: 'Radhaus Becker', reducedMotion: 'reduce' })
    await press(page, 'Buy and pay')
    await headlineIs(page, 'Let in')
    await press(page, 'Cut the platform off')
    await press(page, 'Miss a payment')
    await text(page, '#strip-known', 'purchased, behind')
    await press(page, 'Open the report')
    await press(page, 'Kill the app')
    await press(page, 'Open the report')
    await press(page, 'Confirm payment')
    await text(page, '#strip-known', 'Stopped, 1 webhook waits')
    await press(page, 'Bring the platform back')
    await press(page, 'Slow it down')
    await press(page, 'Start the app')
    await press(beside, 'Kill the app')
    await text(page, '#strip-answer', 'Stopped')
    await press(page, 'Start the app')
    await press(page, 'Open the report')
    await headlineIs(page, 'Let in')
    await press(page, 'Cancel')
    await press(page, 'Make it quick again')
    await headlineIs(page, 'Not let in')
    await headlineIs(beside, 'Not let in')
    await agree([page, beside])
    // A started app is asked anew: what the killed one answered is not shown as its answer.
    const apps = await seen(page, 'app')
    const afterStart = apps.filter((_, i) => apps[i - 1] === 'Starting')
    expect(afterStart).toContain('Not known yet')
    expect(afterStart.filter((app) => app.startsWith('Report'))).toEqual([])
  })

  it('when another page changes the business of a story: the story ends there', async () => {
    const page = await watched({ reducedMotion: 'reduce' })
    await page.locator('.cover', { hasText: 'A customer misses a payment' }).click()
    await page.locator('#story-press .primary').click()
    await text(page, '#story-count', 'Step 2 of 4')
    const other = await watched({ business: 'Yoga Studio Mitte' })
    await press(other, 'Cancel')
    await page.getByText('Something else was done in the meantime').waitFor()
    await page.getByRole('button', { name: 'Play it again' }).click()
    await text(page, '#story-before', 'Yoga Studio Mitte buys the app.')
    await agree([page, other])
  })

  it('and the console of the browser shows no error', () => {
    expect(troubles).toEqual([])
  })
})

/** A page whose pictures are recorded from the first one on. It moves unless requested otherwise. */
async function watched(options: BrowserContextOptions & { business?: string } = {}): Promise<Page> {
  const page = await openDemo(demo().url, { reducedMotion: 'no-preference', ...options })
  await watchPictures(page)
  return page
}

/** What a part of the page has shown, one after the other. */
async function seen(page: Page, part: 'caption' | 'app'): Promise<string[]> {
  const pictures = (await askPage(page, 'pictures')) as Record<typeof part, string>[]
  return pictures.map((picture) => picture[part]).filter((shown, i, all) => shown !== all[i - 1])
}

async function agree(pages: Page[]) {
  for (const page of pages) expect(await askPage(page, 'contradictions')).toEqual([])
}
