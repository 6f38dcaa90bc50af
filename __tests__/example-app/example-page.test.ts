import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import type { Page } from 'playwright-core'
import { askPage, troubles, useBrowser } from '../support/processes/browser.js'
import { until } from '../support/until.js'
import { headlineIs, openDemo, press, startDemo, tabTo, text, useDemo } from './example-page.demo.js'

useBrowser()
const demo = useDemo()

describe('the page of the example app', () => {
  it('begins neutral, lets a business in that buys, and opens the report to it', async () => {
    const page = await open('Bakery Lindt')
    await headlineIs(page, 'No purchase known')
    await text(page, '#reason', 'unknown_business')
    expect(await page.getAttribute('#answer', 'data-answer')).toBe('none')
    expect(await askPage(page, 'isHeadlineGrey')).toBe(true)

    await press(page, 'Buy and pay')
    await headlineIs(page, 'Let in')
    expect(await page.textContent('#explanation')).toContain('A subscription gives access.')
    await text(page, '#truth', 'purchased')
    await text(page, '#known', 'purchased')
    await press(page, 'Open the report')
    await page.waitForSelector('.request[data-status="200"]')
    expect(await page.locator('.bars li').count()).toBe(7)
    expect(await askPage(page, 'isHeadlineGrey')).toBe(false)
  })

  it('shows the events of one press as one group, without a message for screen readers', async () => {
    const page = await open('Radhaus Becker')
    const before = await page.locator('#causes > li').count()
    await press(page, 'Buy and pay')
    await headlineIs(page, 'Let in')
    const group = page.locator('#causes > li').first()
    for (const kind of ['delivery', 'token', 'read', 'change', 'decision']) {
      await group.locator(`[data-kind="${kind}"]`).waitFor()
    }
    expect(await group.locator('.title').textContent()).toBe(
      'Radhaus Becker buys the app, and the payment succeeds',
    )
    expect(await group.locator('.took').textContent()).toMatch(/^answer after [\d.]+ m?s$/)
    await press(page, 'Cancel')
    await headlineIs(page, 'Not let in')
    await page.locator('#causes > li').first().locator('[data-kind="change"]').waitFor()
    expect(await page.locator('#causes > li').count()).toBe(before + 2)
    expect(await askPage(page, 'liveRegions')).toEqual(['status'])
    await text(page, '#status', 'Radhaus Becker: Not let in (not purchased).')
  })

  it('shows one time: the last confirmation by the platform', async () => {
    const page = await openCustomer('Bakery Lindt')
    const words = (await page.textContent('#answer')) ?? ''
    expect(words.match(/\bago\b/g)).toHaveLength(1)
    expect(words.match(/\d+ (s|min|h)\b/g)).toHaveLength(1)
    expect(words.match(/confirmed/gi)).toHaveLength(1)
  })

  it('checks again on request, also for an unknown business', async () => {
    const page = await open('Salon Aurora')
    await press(page, 'Check again')
    await text(page, '#status', 'Asked again: there is nothing to read.')
    const other = await openCustomer('Bakery Lindt')
    const pressedAt = Date.now()
    await press(other, 'Check again')
    await text(other, '#status', 'Read again just now.')
    await other.locator('#causes > li').first().locator('[data-kind="read"]').waitFor()
    await until('the answer is younger than the press', async () => {
      const ago = Number.parseInt(
        (await other
          .locator('#answer')
          .getByText(/^\d+ s ago$/)
          .textContent()) ?? '',
        10,
      )
      return ago * 1_000 <= Date.now() - pressedAt + 1_000
    })
  })

  it('shows the reason for a disabled button', async () => {
    const page = await open('Salon Aurora')
    const cancel = page.getByRole('button', { name: 'Cancel', exact: true })
    expect(await cancel.getAttribute('aria-disabled')).toBe('true')
    expect(await cancel.getAttribute('title')).toBe('Nothing has been bought yet')
    await cancel.focus()
    await page.keyboard.press('Enter')
    await text(page, '#status', 'Cancel: not now. Nothing has been bought yet.')
    await text(page, '#truth', 'nothing bought')
  })

  it('shows the code behind each button on request', async () => {
    const page = await open()
    expect(await page.locator('.code:visible').count()).toBe(0)
    const buttons = page.locator('.freely .pair')
    expect(await buttons.count()).toBe(await page.locator('.freely .with-code button:not(.opener)').count())
    for (const pair of await buttons.all()) {
      await pair.locator('.opener').click()
      const pieces = await page.locator('.code:visible .piece').all()
      expect(pieces.length).toBeGreaterThan(0)
      for (const piece of pieces) {
        const [, file] = /, (\S+)$/.exec((await piece.locator('pre').getAttribute('aria-label')) ?? '') ?? []
        const source = await readFile(join(__dirname, '..', '..', 'example-app', String(file)), 'utf8')
        expect(unindented(source)).toContain(unindented((await piece.locator('code').textContent()) ?? '-'))
      }
      await pair.locator('.opener').click()
    }
    expect(await page.locator('.code:visible').count()).toBe(0)
    await page.getByRole('button', { name: 'Code behind Open the report' }).click()
    await page.locator('.code:visible').getByText('marketplace.requireEntitlement(').waitFor()
  })

  it('can be used with the keyboard alone', async () => {
    const page = await open()
    await page.waitForSelector('#businesses input:checked')
    await tabTo(page, 'Bakery Lindt')
    await page.keyboard.press('ArrowDown')
    expect(await askPage(page, 'focusedWords')).toBe('Yoga Studio Mitte')
    await tabTo(page, 'Buy, payment fails')
    expect(await askPage(page, 'outlineOfFocus')).toBe('solid')
    await page.keyboard.press('Enter')
    await text(page, '#reason', 'not_purchased')
    await tabTo(page, 'Confirm payment')
    await page.keyboard.press('Space')
    await headlineIs(page, 'Let in')
    await tabTo(page, 'Open the report', 'Shift+Tab')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.request[data-status="200"]')
  })

  it('shows that a decision is being made while the platform is slow', async () => {
    const page = await open('Salon Aurora')
    await press(page, 'Slow it down')
    await press(page, 'Buy and pay')
    // Both at once: on a busy machine the answer may have come before a second look.
    await page.locator('#answer[aria-busy="true"]').getByText('Checking…').waitFor()
    await headlineIs(page, 'Let in')
    await page.waitForSelector('#answer[aria-busy="false"]')
    await press(page, 'Make it quick again')
  })

  it('shows that a subscription has not been read yet', async () => {
    const page = await open('Café Morgenrot')
    await press(page, 'Cut the platform off')
    await press(page, 'Buy and pay')
    await headlineIs(page, 'Not known yet')
    await page.locator('.subscriptions').getByText('not read yet').waitFor()
    await text(page, '#strip-known', 'not read yet')
    await press(page, 'Bring the platform back')
    await headlineIs(page, 'Let in')
    await page.locator('.subscriptions').getByText('purchased').waitFor()
  })

  it('keeps the last answer while the platform is cut off, and shows a killed app as stopped', async () => {
    const page = await openCustomer('Café Morgenrot')
    await press(page, 'Cut the platform off')
    await press(page, 'Miss a payment')
    await page.locator('.trouble').getByText('last read failed').waitFor()
    await headlineIs(page, 'Let in')
    await text(page, '#known', 'purchased, behind')

    await press(page, 'Kill the app')
    await headlineIs(page, 'The app is stopped')
    expect(await page.getAttribute('#answer', 'data-answer')).toBe('stopped')
    expect(await page.getAttribute('#answer', 'aria-busy')).toBe('false')
    expect(await page.textContent('#explanation')).toContain('No webhook waits for it now.')
    await press(page, 'Confirm payment')
    await page.getByText('1 webhook waits.').waitFor()
    await text(page, '#strip-answer', 'Stopped')
    await text(page, '#strip-known', 'Stopped, 1 webhook waits')

    await press(page, 'Bring the platform back')
    await press(page, 'Start the app')
    await headlineIs(page, 'Let in')
    await page
      .locator('#causes > li')
      .first()
      .getByText(/update, acknowledged, try \d/)
      .waitFor()
    await text(page, '#known', 'purchased')
  })

  it('turns grey with a message while the demo does not answer, and continues afterwards', async () => {
    const noted = troubles.length
    let other = await startDemo()
    const page = await openDemo(other.url, { business: 'Bakery Lindt' })
    expect(await askPage(page, 'isGrey')).toBe(false)
    expect(await page.locator('#lost').isVisible()).toBe(false)

    other.signal('SIGKILL')
    await other.ended
    await text(page, '#live', 'Not connected')
    expect(await page.locator('#lost').innerText()).toMatch(
      /^The demo cannot be reached. The page shows the state at \d\d:\d\d:\d\d\. .+npm run demo/,
    )
    expect(await askPage(page, 'isGrey')).toBe(true)
    const buttons = page.locator('.freely .pair > :not(.opener)')
    for (const button of await buttons.all()) expect(await button.getAttribute('aria-disabled')).toBe('true')
    // The browser itself logs that it cannot connect.
    troubles.length = noted

    other = await startDemo(Number(new URL(other.url).port))
    await text(page, '#live', 'Connected')
    expect(await askPage(page, 'isGrey')).toBe(false)
    await press(page, 'Buy and pay')
    await headlineIs(page, 'Let in')
    // Before the end of its demo, which the browser would log.
    await page.close()
    troubles.length = noted
  })

  it('leaves no error in the console', () => {
    expect(troubles).toEqual([])
  })

  it('ends with Ctrl-C, and leaves no database behind', async () => {
    const { signal, ended, temporary } = demo()
    signal('SIGINT')
    expect(await ended).toMatchObject({ code: 0 })
    expect((await readdir(temporary)).filter((name) => name.startsWith('reports-demo-'))).toEqual([])
  })
})

function open(business?: string): Promise<Page> {
  return openDemo(demo().url, business ? { business } : {})
}

/** Opens the page of a business that has bought. */
async function openCustomer(business: string): Promise<Page> {
  const page = await open(business)
  if ((await page.textContent('#headline')) !== 'Let in') await press(page, 'Buy and pay')
  await headlineIs(page, 'Let in')
  return page
}

/** The code without its indentation. */
function unindented(code: string): string {
  return code
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
}
