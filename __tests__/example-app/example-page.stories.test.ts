import { describe, expect, it } from '@jest/globals'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { askPage, troubles, useBrowser } from '../support/processes/browser.js'
import { headlineIs, openDemo, press, tabTo, text, useDemo } from './example-page.demo.js'

useBrowser()
const demo = useDemo()

describe('the first screen of the example app', () => {
  it('shows the question, the console, the stories and the strip on a desk and on a phone', async () => {
    const top = ['Console', 'May this business use my app now?']
    const stories = ['A customer pays', 'A customer misses a payment', 'The app dies']
    const strip = ['Platform', 'This package', 'Your app']
    const desk = await open({ viewport: { width: 1280, height: 720 } })
    expect(await askPage(desk, 'partsInSight')).toEqual([...top, ...stories, ...strip])
    const phone = await open({ viewport: { width: 390, height: 844 } })
    expect(await askPage(phone, 'partsInSight')).toEqual([...top, ...stories, ...strip])
    for (const [width, height] of [
      [360, 640],
      [320, 640],
    ] as const) {
      const small = await open({ viewport: { width, height } })
      expect(await askPage(small, 'partsInSight')).toEqual(expect.arrayContaining([...top, ...stories]))
    }
  })

  it('begins a story, and has its button and the strip in sight', async () => {
    const phone = await open({ viewport: { width: 360, height: 640 } })
    await phone.locator('.cover').first().click()
    await phone.locator('#story-press .primary').click()
    await text(phone, '#story-count', 'Step 2 of 3')
    expect(await askPage(phone, 'partsInSight')).toEqual([
      'Platform',
      'This package',
      'Your app',
      'Buy and pay',
    ])
  })

  it('opens the console of the app at the chosen business with one click', async () => {
    const page = await open({ business: 'Radhaus Becker' })
    const [console] = await Promise.all([
      page.context().waitForEvent('page'),
      page.getByRole('link', { name: 'Console' }).click(),
    ])
    await console.getByText('radhaus-becker').first().waitFor()
  })

  it('lights the parts of the strip one after the other, as a webhook passes through', async () => {
    const page = await open({ reducedMotion: 'no-preference', business: 'Radhaus Becker' })
    await text(page, '#strip-truth', 'nothing bought')
    await askPage(page, 'watchStrip')
    await press(page, 'Buy and pay')
    // The strip plays events slowly that took milliseconds; the stations of the strip wait for it.
    await text(page, '#strip-answer', 'Report closed')
    await text(page, '#strip-answer', 'Report open')
    await text(page, '#strip-known', 'purchased')
    await page.waitForSelector('#strip:not(:has([data-lit="now"]))')
    const lit = (await askPage(page, 'litOfStrip')) as string[]
    const order = ['platform', 'webhook,package', 'platform,read', 'package,answer,app'].map((parts) =>
      lit.indexOf(parts),
    )
    expect(order).not.toContain(-1)
    expect(order).toEqual([...order].sort((a, b) => a - b))
    expect(await askPage(page, 'shortestLight')).toBeGreaterThan(500)
  })
})

describe('the stories of the example app', () => {
  let page: Page

  it('show how a customer pays', async () => {
    page = await open()
    await begin('A customer pays', 'Step 1 of 3')
    await step('Open the report', 'Step 2 of 3', 'The gate answers 402')
    await step('Buy and pay', 'Step 3 of 3', 'The webhook was written to disk')
    await step('Open the report', 'The end', '200 OK')
    await headlineIs(page, 'Let in')
    await text(page, '#truth', 'purchased')
    await isGroup(0, 'Bakery Lindt opens the report: 200 OK')
    await isGroup(1, 'Bakery Lindt buys the app, and the payment succeeds')
    await isGroup(2, 'Bakery Lindt opens the report: 402 Payment Required')
  })

  it('show how a customer misses a payment, and pays', async () => {
    page = await open()
    await begin('A customer misses a payment', 'Step 1 of 4')
    await step('Buy and pay', 'Step 2 of 4', 'The studio may use the app.')
    await headlineIs(page, 'Let in')
    await step('Miss a payment', 'Step 3 of 4', 'The studio is not let in any more.')
    await headlineIs(page, 'Not let in')
    await step('Open the report', 'Step 4 of 4', '402 Payment Required')
    await step('Confirm payment', 'The end', 'let in again')
    await headlineIs(page, 'Let in')
  })

  it('close when another business is chosen, because their words are about their own', async () => {
    page = await open()
    await begin('A customer misses a payment', 'Step 1 of 4')
    await page.getByLabel('Salon Aurora').check()
    await page.locator('#player').waitFor({ state: 'hidden' })
  })

  it('show that nothing is lost when the app is killed while a webhook is on its way', async () => {
    page = await open()
    await begin('The app dies', 'Step 1 of 3')
    await step('Buy, then kill -9', 'Step 2 of 3', 'Only the line on disk remains of the purchase.')
    await headlineIs(page, 'The app is stopped')
    const happened = page.locator('#causes > li').first().locator('.words')
    await happened.getByText('The app is killed (SIGKILL)').waitFor()
    // On a busy machine the read begins before the kill, and its requests are listed too.
    const words = await happened.allTextContents()
    expect(words.filter((each) => /acknowledged|killed/.test(each))).toEqual([
      'purchasable_subscription/create, acknowledged',
      'The app is killed (SIGKILL)',
    ])
    await step('Miss a payment, then pay', 'Step 3 of 3', 'Both are lost.')
    await isGroup(0, 'Café Morgenrot misses a payment, then pays')
    await text(page, '#strip-known', 'Stopped, its database is on disk')
    await step('Start the app', 'The end', 'The line was still on disk')
    await headlineIs(page, 'Let in')
    await isGroup(0, 'The app starts')
    const group = page.locator('#causes > li').first()
    await group.locator('[data-kind="decision"]').getByText('Let in: purchased').waitFor()
    await group.locator('[data-kind="read"]').first().waitFor()
    expect(await group.locator('[data-kind="delivery"]').count()).toBe(0)
    await text(page, '#known', 'purchased')
    expect(await page.textContent('#story-before')).toContain('Nothing is lost.')
  })

  it('can be played again, with the keyboard alone, and a screen reader announces each step once', async () => {
    page = await open()
    await tabTo(
      page,
      'A customer paysA webhook arrives, the package reads the subscription, the report opens.',
    )
    await page.keyboard.press('Enter')
    await page.waitForSelector('#story-press .primary:focus')
    for (const [button, next] of [
      ['Open the report', 'Step 2 of 3'],
      ['Buy and pay', 'Step 3 of 3'],
      ['Open the report', 'The end'],
    ] as const) {
      expect(await askPage(page, 'focusedWords')).toBe(button)
      await page.keyboard.press('Enter')
      await text(page, '#story-count', next)
      expect(await page.textContent('#status')).toMatch(/^Step \d of 3: /)
    }
    expect(await askPage(page, 'focusedWords')).toBe('Play it again')
    await headlineIs(page, 'Let in')
    await page.keyboard.press('Enter')
    await page.waitForSelector('#story-press .primary:focus')
    await text(page, '#story-count', 'Step 1 of 3')
    expect(await askPage(page, 'focusedWords')).toBe('Open the report')
  })

  it('show the code behind each step', async () => {
    page = await open()
    await begin('The app dies', 'Step 1 of 3')
    await page.getByRole('button', { name: 'Code behind Buy, then kill -9' }).click()
    await page.locator('.player .code').getByText("app.use('/webhooks/marketplace'").waitFor()
    await page.locator('.player .code').getByText('app.kill()').waitFor()
  })

  it('leave no error in the console', () => {
    expect(troubles).toEqual([])
  })

  async function begin(title: string, count: string) {
    await page.locator('.cover', { hasText: title }).click()
    await text(page, '#story-title', title)
    await text(page, '#story-count', count)
  }

  async function step(button: string, count: string, after: string) {
    await page
      .locator('#story-press button:not(.opener)')
      .and(page.getByText(button, { exact: true }))
      .click()
    await text(page, '#story-count', count)
    await page.locator('#story-after').filter({ hasText: after }).waitFor()
  }

  async function isGroup(at: number, title: string) {
    const group = page.locator('#causes > li').nth(at).locator('.title')
    await group.and(page.getByText(title, { exact: true })).waitFor()
  }
})

function open(options: BrowserContextOptions & { business?: string } = {}): Promise<Page> {
  return openDemo(demo().url, options)
}
