import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import express from 'express'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { systemClock } from '../../lib/base/clock.js'
import { storeFor } from '../../lib/store-option.js'
import { sampleDelivery } from '../../lib/testing/index.js'
import { withStoreFaults } from '../support/engines/store-faults.js'
import { storeOption } from '../support/engines/store-option.js'
import { openStoreWithSql } from '../support/engines/store-with-sql.js'
import { askPage, axeViolations, openPage, troubles, useBrowser } from '../support/processes/browser.js'
import {
  createScene,
  newFile,
  OTHER_ITEM,
  OUR_ITEM,
  deliver as post,
  type Scene,
  serve,
} from '../support/scene.js'
import { mountConsole, PEOPLE, type RoleName } from '../support/scenes/console.js'
import { addDeadEntries, addSubscriptions } from '../support/scenes/large-tables.js'
import { gate, until } from '../support/until.js'

const LOOKS = {
  'phone by night': { viewport: { width: 360, height: 740 }, colorScheme: 'dark' },
  'desk by day': { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
} as const
const CHAPTERS = ['Business', 'Needs attention', 'Live', 'Health', 'Privacy']

useBrowser()
beforeAll(async () => {
  // The test opens the bundled page, so the bundle must match its sources.
  const bundle = join(__dirname, '..', '..', 'lib', 'console', 'page-bundle.ts')
  const before = await readFile(bundle, 'utf8')
  execFileSync(process.execPath, [join(__dirname, '..', '..', 'scripts', 'build-console-page.mjs')])
  if ((await readFile(bundle, 'utf8')) !== before)
    throw new Error('the page was older than its sources: run `npm run build`, then test again')
})

describe('the page of the console', () => {
  it('leads a support person from "I paid and cannot get in" to the next step in two steps, and to the repair in one more', async () => {
    const { platform, url, marketplace } = await createStage()
    const { uid } = platform.purchase({ business_uid: 'business-1', payment: 'failed' })
    await until(
      'the subscription is read',
      async () => (await marketplace.explain('business-1')).reason === 'not_purchased',
    )
    // The customer pays, and the event of the payment is lost.
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    platform.confirmPayment(uid)

    const page = await open(url, 'support')
    let steps = 0
    const box = page.getByLabel('Business or subscription')
    await until('the search field has the focus', () => askPage(page, 'hasFocusInSearch'))
    await page.keyboard.insertText(` "${uid}" `)
    steps++
    await page.keyboard.press('Enter')
    steps++
    await headline(page, 'May not use the app')
    expect(await page.textContent('#next-step')).toContain('After the payment, read again.')
    await box.waitFor()
    await press(page, 'Read again')
    steps++
    await headline(page, 'May use the app')
    await page.getByText('Read from the platform: changed from suspended to purchased.').waitFor()
    expect(steps).toBe(3)
  })

  it('shows by itself that the customer may use the app now', async () => {
    const { platform, url, marketplace } = await createStage()
    const { uid } = platform.purchase({ business_uid: 'business-1', payment: 'failed' })
    await until(
      'the subscription is read',
      async () => (await marketplace.explain('business-1')).reason === 'not_purchased',
    )
    const page = await open(`${url}#/business/business-1`, 'support')
    await headline(page, 'May not use the app')
    platform.confirmPayment(uid)
    await headline(page, 'May use the app')
    await page.getByText('Changed from suspended to purchased: gives access').first().waitFor()
  })

  it('tracks the subscription of an unknown business', async () => {
    const { platform, url } = await createStage()
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: 'business-lost', payment: 'succeeded' })

    const page = await open(url, 'support')
    await search(page, 'https://platform.example/businesses/business-lost')
    await headline(page, 'Not known here')
    expect(await page.textContent('#next-step')).toBe(
      'Ask the customer for the identifier of the subscription, which the platform shows with the purchase, and track it.',
    )
    await press(page, 'Track…')
    await page
      .getByLabel('Identifier of the subscription')
      .fill(JSON.stringify({ data: { subscription_uid: uid } }))
    await press(page, 'Track')
    await headline(page, 'May use the app')
    await page.getByText(`track by sue@example.com (support) (${uid})`).waitFor()
  })

  it('asks "did you mean" for a slip, and opens what begins as typed', async () => {
    const { platform, url, marketplace } = await createStage()
    for (const business_uid of ['bakery-north', 'bakery-south'])
      platform.purchase({ business_uid, payment: 'succeeded' })
    await until('both are read', async () => (await marketplace.subscriptions.list()).length === 2)
    const page = await open(url, 'support')
    await search(page, 'BAKERY N')
    await page.locator('.of').getByText('bakery-north').waitFor()
    await search(page, 'bakery-')
    await page.getByRole('heading', { name: 'Did you mean' }).waitFor()
    await page.locator('search').getByRole('link', { name: 'bakery-south' }).click()
    await page.locator('.of').getByText('bakery-south').waitFor()
    expect(await page.getByRole('heading', { name: 'Did you mean' }).count()).toBe(0)
    await search(page, 'bakery-noth')
    await page.getByRole('link', { name: 'Open it all the same' }).click()
    await headline(page, 'Not known here')
  })

  it('keeps the order of a sentence around an identifier with a character of direction', async () => {
    const { url, marketplace } = await createStage()
    await marketplace.subscriptions.track({ subscriptionUid: 's1', businessUid: 'shop\u202e1' })
    const page = await open(url, 'support')
    await page.locator('.row-words').waitFor()
    const isInOrder = await page.evaluate(`(() => {
      const uid = document.querySelector('.row-words .uid')
      const after = document.createRange()
      after.selectNode(uid.nextSibling)
      return after.getBoundingClientRect().left >= uid.getBoundingClientRect().right - 1
    })()`)
    expect(isInOrder).toBe(true)
  })

  it('says why it does not search a long text, here and to track', async () => {
    const { url } = await createStage()
    const page = await open(url, 'support')
    const why = 'A text to search has at most 1500 characters. Paste only the identifier.'
    const long = `business-1 ${'x'.repeat(30_000)}`
    await search(page, long)
    await page.getByText(why).waitFor()
    await search(page, 'business-1')
    await headline(page, 'Not known here')
    await press(page, 'Track…')
    await page.getByLabel('Identifier of the subscription').fill(long)
    await press(page, 'Track')
    await page.getByText(why).waitFor()
  })

  it('shows the timeline, and an entry without its values', async () => {
    const { platform, url } = await createStage()
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    const page = await open(url, 'support', '#/business/business-1')
    await headline(page, 'May use the app')
    await page.getByText('First read: purchased: gives access').waitFor()

    await press(page, 'Delivery purchasable_subscription/create')
    await page.getByText('Shape (only operators see values)').waitFor()
  })

  it('replays a group with a preview and a reason, and records the actor', async () => {
    const { url, platform, marketplace, repair } = await createStage({ isBroken: true })
    for (const n of [1, 2, 3]) platform.install(`business-${n}`)
    await platform.settled()
    await until(
      'three entries are dead',
      async () => (await marketplace.journal.list({ status: 'dead' })).length === 3,
    )

    const page = await open(url, 'operator', '#/attention')
    await page.getByText('3 entries', { exact: true }).waitFor()
    await page.getByText('Cannot write to ledger 4711').waitFor()
    await press(page, 'Show the entries')
    await page.getByRole('link', { name: 'business-2' }).waitFor()

    repair()
    await press(page, 'Replay the group…')
    await page.getByText('Passes 3 entries of application/installed to their handlers again').waitFor()
    await page.getByLabel('Reason (recorded with your name)').fill('the ledger is back')
    await press(page, 'Replay 3 entries')
    await page.getByText('3 entries were replayed.').waitFor()
    await page.getByText('3 handled.').waitFor()
    await until(
      'all entries are done',
      async () => (await marketplace.journal.list({ status: 'done', kind: 'event' })).length >= 3,
    )
    const action = (await marketplace.journal.list({ kind: 'action' })).at(-1)
    expect(action?.payload).toMatchObject({
      actor: 'otto@example.com (operator)',
      action: 'replay',
      reason: '3 entries of application/installed; the ledger is back',
    })
    for (const n of [1, 2, 3])
      expect(await marketplace.businesses.history(`business-${n}`)).toContainEqual(
        expect.objectContaining({
          action: 'replay',
          reason: 'one of 3 entries of application/installed; the ledger is back',
        }),
      )
    await press(page, 'Reload')
    await page.getByText('There are no dead and no retrying entries.').waitFor()
  })

  it('leads from a payer whose handler failed to the entry, and shows what became of its replay', async () => {
    const { url, platform, marketplace, repair } = await createStage({ isBroken: true })
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    platform.install('business-1')
    await until(
      'the entry is dead',
      async () => (await marketplace.journal.list({ status: 'dead' })).length === 1,
    )
    await until('the purchase is read', () => marketplace.isEntitled('business-1'))
    const page = await open(url, 'operator', '#/business/business-1')
    await headline(page, 'May use the app')
    expect(await page.textContent('#next-step')).toContain('setting it up failed')
    const outcome = page.locator('.outcome')
    await press(page, 'Replay…')
    await press(page, 'Replay 1 entry')
    await outcome.getByText('1 failed again.').waitFor()
    await outcome.getByText('Error: Cannot write to ledger 4711').waitFor()

    await page.getByRole('link', { name: 'Open the failed entry' }).click()
    await page.getByRole('heading', { name: 'Stack' }).waitFor()
    repair()
    await page.getByRole('dialog').getByRole('button', { name: 'Replay…' }).click()
    await press(page, 'Replay 1 entry')
    await outcome.getByText('1 handled.').waitFor()
  })

  it('groups what became of a replay by its cause, and counts the rest', async () => {
    const { marketplace, platform, app, url } = await createScene({ handlers: { retryDelaysMs: [] } })
    mountConsole(app, marketplace)
    const businesses = ['milano', 'berlin', 'shop-7', 'paris', 'wien', 'b-1', 'b-2', 'b-3']
    marketplace.on('application/installed', ({ data: { business_id: business } }) => {
      const others = businesses.slice(2).indexOf(business)
      throw new Error(others < 0 ? `no room for ${business}` : `other cause ${'abcdef'[others]}`)
    })
    for (const business of businesses) platform.install(business)
    await platform.settled()
    await until('all are dead', async () => (await marketplace.health()).counts?.dead === 8)
    const page = await open(`${url}/ops`, 'operator', '#/attention')
    await press(page, 'Replay all 8 dead entries…')
    await page.getByLabel('Reason').fill('again')
    await press(page, 'Replay 8 entries')
    const outcome = page.locator('.outcome')
    await outcome.getByText('8 failed again.').waitFor()
    const lines = await outcome.locator('li').allTextContents()
    expect(lines[0]).toBe('application/installed: Error: no room for # (2) Open one')
    expect(lines.slice(1, 5)).toEqual(
      Array(4).fill(
        expect.stringMatching(/^application\/installed: Error: other cause [a-f] \(1\) Open one$/),
      ),
    )
    expect(lines.slice(5)).toEqual(['2 with other errors: see the groups below.'])
  })

  it('links support to the entry of a payer whose handler failed, without a replay', async () => {
    const { url, platform, marketplace } = await createStage({ isBroken: true })
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    platform.install('business-1')
    await until('it is dead', async () => (await marketplace.journal.list({ status: 'dead' })).length === 1)
    await until('the purchase is read', () => marketplace.isEntitled('business-1'))
    const page = await open(url, 'support', '#/business/business-1')
    await headline(page, 'May use the app')
    expect(await page.getByRole('button', { name: /Replay/ }).count()).toBe(0)
    await page.getByRole('link', { name: 'Open the failed entry' }).click()
    await page.getByText('Shape (only operators see values)').waitFor()
    expect(await page.getByRole('button', { name: /Replay/ }).count()).toBe(0)
  })

  it('shows failures to support, without a way to replay them', async () => {
    const stage = await createStage({ isBroken: true })
    await failedInstall(stage)
    const page = await open(stage.url, 'support', '#/attention')
    await page.getByText('1 entry', { exact: true }).waitFor()
    expect(await page.getByRole('button', { name: /Replay/ }).count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Privacy' }).count()).toBe(0)
  })

  it('shows unrecognised deliveries by shape, other items and wrong secrets', async () => {
    const { url, deliver, platform, target, marketplace } = await createStage()
    for (const n of [1, 2])
      await deliver({ entity_name: 'invoice', event_type: 'paid', data: { id: `i-${n}` } })
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded', purchasable_uid: OTHER_ITEM })
    await platform.settled()
    await marketplace.settled()
    await fetch(`${target}x`, { method: 'POST', body: '{}' })
    const page = await open(url, 'support', '#/attention')
    await page.getByText('2 times').waitFor()
    await page.getByText('1 issue. An operator finds the text').waitFor()
    await page.getByText('is for the item').waitFor()
    await page.locator('dt:text("Requests with a wrong secret") + dd').getByText('1, last').waitFor()
  })

  it('shows new entries live, and after a pause continues at the same entry', async () => {
    const { url, platform } = await createStage()
    platform.install('business-1')
    await platform.settled()
    const page = await open(url, 'support', '#/live')
    await page.locator('#live').getByText('business-1').first().waitFor()
    await press(page, 'Pause')
    await page.getByText('Paused').waitFor()
    platform.install('business-2')
    await platform.settled()
    await press(page, 'Continue')
    await page.locator('#live').getByText('business-2').first().waitFor()
    expect(await page.locator('#live').getByText('business-1').count()).toBeGreaterThan(0)
  })

  it('names the business in its title', async () => {
    const { url } = await createStage()
    const page = await open(url, 'support')
    const titled = (title: string) => until(title, async () => (await page.title()) === title)
    await titled('Business · Console')
    await search(page, 'business-1')
    await headline(page, 'Not known here')
    await titled('business-1 · Business · Console')
    await page.getByRole('link', { name: 'Health' }).click()
    await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor()
    await titled('Health · Console')
  })

  it.each([
    ['', 'subscriptions', 'None.'],
    [
      '#/business/b',
      'history',
      'Nothing is recorded of this business. An unrecognised delivery belongs to none.',
    ],
    ['#/attention', 'attention', 'There are no dead and no retrying entries.'],
    ['#/live', 'live', 'Nothing yet.'],
  ])('says on %s that it loads %s, and "%s" only after an answer', async (place, call, nothing) => {
    const { url } = await createStage()
    const held = gate()
    const page = await openPage('about:blank', { userAgent: 'support' })
    await page.route(new RegExp(`/call/${call}[?]`), async (route) => {
      await held.opened
      await route.continue()
    })
    await page.goto(`${url}${place}`)
    await page.getByRole('navigation').waitFor()
    await page.getByText('Loading…').first().waitFor()
    expect(await page.getByText(nothing, { exact: true }).count()).toBe(0)
    held.open()
    await page.getByText(nothing, { exact: true }).first().waitFor()
  })

  it('keeps what was typed when the session is lost, and goes on when it is back', async () => {
    const { marketplace, app, url } = await createScene()
    let isSignedIn = true
    const authorize = () => (isSignedIn ? PEOPLE.support : null)
    mountConsole(app, marketplace, { authorize, signInUrl: '/sign-in?to=ops' })
    const page = await open(`${url}/ops`, 'support', '#/business/business-1')
    await press(page, 'Track…')
    await page.getByLabel('Identifier of the subscription').fill('subscription-1')
    await page.getByLabel('Reason').fill('ticket 812')
    isSignedIn = false
    const ignored = troubles.length
    await press(page, 'Track')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('You are signed out.').waitFor()
    const signIn = dialog.getByRole('link', { name: 'Sign in' })
    expect([await signIn.getAttribute('href'), await signIn.getAttribute('target')]).toEqual([
      '/sign-in?to=ops',
      '_blank',
    ])
    await dialog.getByText('You are not signed in.').waitFor()
    expect(await page.getByLabel('Identifier of the subscription').inputValue()).toBe('subscription-1')
    expect(await page.getByLabel('Reason').inputValue()).toBe('ticket 812')
    isSignedIn = true
    await press(page, 'Track')
    await page.getByText('The app could not look').waitFor()
    await until('the notice is gone', async () => (await page.getByText('You are signed out.').count()) === 0)
    // The browser reports the two refusals.
    troubles.splice(ignored)
  })

  it('shows a problem with its next step', async () => {
    const stage = await createStage({ isBroken: true })
    await failedInstall(stage)
    const page = await open(stage.url, 'support', '#/health')
    await page.getByText('It works, but needs attention').waitFor()
    await page.getByText('mend the handler, and replay the entries there').waitFor()
    await page.getByRole('navigation').getByText('1 failed').waitFor()
    await page.getByRole('link', { name: 'Open Needs attention' }).click()
    await page.getByText('1 entry', { exact: true }).waitFor()
  })

  it('shows its health, and fits a phone, even if the database does not answer', async () => {
    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    const { marketplace, app, url } = await createScene({ store: storeOption(store) })
    mountConsole(app, marketplace)
    store.faults.add({ on: 'counts', kind: 'unavailable' })
    const { viewport } = LOOKS['phone by night']
    const page = await open(`${url}/ops`, 'support', '#/health', { viewport })
    await page.getByText('It does not work').waitFor()
    await check(page, 'health without a database', viewport.width)
    await page.getByRole('link', { name: 'Live' }).click()
    await page.getByText('The database of the app cannot be used at the moment.').waitFor()
  })

  it('shows on every chapter that the platform is down, and how many entries failed, counted up to a bound', async () => {
    const { marketplace, app, url } = await createScene({ worker: false })
    const { counts } = await marketplace.health()
    if (counts === null) throw new Error('expected counts')
    const code = 'reads_failing' as const
    const health = async () => ({
      status: 'degraded' as const,
      problems: [
        { code, message: 'most reads fail', next: 'Wait.' },
        { code: 'requests_overdue' as const, message: 'a read is late', next: 'raise reads.concurrency' },
      ],
      counts: { ...counts, dead: 10_000, subscriptions: 1_000, active: 12 },
    })
    mountConsole(app, { ...marketplace, health })
    const page = await open(`${url}/ops`, 'support')
    for (const chapter of ['Live', 'Health', 'Business']) {
      await page.getByRole('link', { name: chapter, exact: true }).click()
      await page.getByText('Each business keeps its last answer until that is too old').waitFor()
    }
    await page.getByRole('navigation').getByText('10,000+').waitFor()
    await page.getByRole('link', { name: 'Open Health' }).click()
    await page
      .getByText('subscriptions that are not read yet: open them to see why their reads fail')
      .waitFor()
    await page.getByRole('link', { name: 'Open Business' }).waitFor()
    for (const [words, number] of [
      ['Known subscriptions', '1,000+'],
      ['Active businesses', '12'],
    ])
      await page
        .locator(`dt:text-is("${words}") + dd`)
        .getByText(number as string, { exact: true })
        .waitFor()
  })

  it('shows the last day as a chart, with the same in words', async () => {
    const stage = await createStage({ isBroken: true })
    await failedInstall(stage)
    await stage.deliver({ entity_name: 'invoice', event_type: 'paid', data: { id: 'i-1' } })
    const page = await open(stage.url, 'support', '#/health')
    await page.getByRole('img', { name: 'In the last day: 2 deliveries, 0 handled, 1 failed.' }).waitFor()
    await page.locator('.legend').getByText('2 deliveries').waitFor()
    expect(await page.locator('.chart rect[data-series="failed"]').count()).toBe(24)
  })

  it('copies a text for the customer, in plain words', async () => {
    const { url, platform, marketplace } = await createStage()
    platform.purchase({ business_uid: 'business-1', payment: 'failed' })
    await until(
      'it is read',
      async () => (await marketplace.explain('business-1')).reason === 'not_purchased',
    )
    const page = await open(url, 'support', '#/business/business-1', { permissions: ['clipboard-write'] })
    await headline(page, 'May not use the app')
    await press(page, 'Copy text for the customer')
    const text = page.locator('#customer-text')
    await text.getByText('Please pay on the marketplace.').waitFor()
    expect(await text.textContent()).not.toContain('business-1')
  })

  it('finds a business by what the app knows of it, and offers several', async () => {
    const { marketplace, app, url } = await createScene({ worker: false })
    const customers: Record<string, unknown> = { 'ada@shop.example': 'shop-1', Bakery: ['shop-2', 'shop-3'] }
    mountConsole(app, marketplace, { lookup: async (text: string) => customers[text] })
    const page = await open(`${url}/ops`, 'support')
    await search(page, 'ada@shop.example')
    await page.locator('.of').getByText('shop-1').waitFor()
    await search(page, 'Bakery')
    await page.getByRole('heading', { name: 'Did you mean' }).waitFor()
    await page.locator('search').getByRole('link', { name: 'shop-3' }).click()
    await page.locator('.of').getByText('shop-3').waitFor()
  })

  it('takes nobody for unknown while the lookup of the app fails, and opens and tracks all the same', async () => {
    const { marketplace, app, url, platform } = await createScene()
    mountConsole(app, marketplace, { lookup: () => Promise.reject(new Error('no network')) })
    platform.faults.add({ on: 'delivery', kind: 'drop' })
    const { uid } = platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    const page = await open(`${url}/ops`, 'support')
    await search(page, 'business-1')
    await page.getByText('The search of your app for names failed.').waitFor()
    await page.getByRole('link', { name: 'Open it all the same' }).click()
    await headline(page, 'Not known here')
    await press(page, 'Track…')
    await page.getByLabel('Identifier of the subscription').fill(uid)
    await press(page, 'Track')
    await headline(page, 'May use the app')
  })

  it('exports a business as a file, and erases it after its identifier was typed', async () => {
    const { url, platform, marketplace } = await createStage()
    platform.purchase({ business_uid: 'business-1', payment: 'succeeded' })
    await until('the subscription is read', () => marketplace.isEntitled('business-1'))
    const page = await open(url, 'operator', '#/privacy')
    const look = async (business: string) => {
      await page.getByLabel('Business', { exact: true }).fill(business)
      await press(page, 'Show what is stored')
    }
    await look('business-0')
    await page.getByText('Nothing is stored for this business.').waitFor()
    await look('business-1')
    await page.getByText(/^Stored: 1 subscription of this business, and \d+ entries of the journal/).waitFor()
    await page.getByText('After an erasure it loses its access').waitFor()
    await page.getByLabel('Reason').fill('request 12')
    const [download] = await Promise.all([page.waitForEvent('download'), press(page, 'Export')])
    expect(download.suggestedFilename()).toBe('business-business-1.json')

    await page.getByLabel('Type its identifier again').fill('business-2')
    expect(await page.getByRole('button', { name: 'Erase' }).isDisabled()).toBe(true)
    await page.getByLabel('Type its identifier again').fill('business-1')
    await press(page, 'Erase')
    await page.getByText(/Erased \d+ rows of business-1/).waitFor()
    expect(await marketplace.explain('business-1')).toMatchObject({ reason: 'unknown_business' })
    platform.install('business-2')
    await platform.settled()
    await look('business-2')
    await page.getByText('This business has no access now').waitFor()
    expect(await page.getByLabel('Reason').inputValue()).toBe('request 12')
  })

  it('can be used with the keyboard alone', async () => {
    const stage = await createStage({ isBroken: true })
    await failedInstall(stage)
    const page = await open(stage.url, 'operator')
    await tabTo(page, 'Needs attention', 'Shift+Tab')
    expect(await askPage(page, 'outlineOfFocus')).toBe('solid')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Needs attention' }).waitFor()
    await page.getByText('1 entry', { exact: true }).waitFor()
    await tabTo(page, 'Replay the group…')
    await page.keyboard.press('Enter')
    await page.getByText('Passes 1 entry of application/installed').waitFor()
    await page.keyboard.type('fixed')
    await page.keyboard.press('Enter')
    await page.getByText('1 entry was replayed.').waitFor()
    await until('the focus is back', async () => (await askPage(page, 'focusedWords')) !== '')
  })

  it('shows 10,000 subscriptions page by page', async () => {
    const { url, marketplace } = await createStage({ worker: false })
    const lines = Array.from({ length: 10_000 }, (_, n) => `s-${String(n).padStart(5, '0')}`)
    await Promise.all(
      lines.map((uid) =>
        marketplace.subscriptions.track({ subscriptionUid: uid, businessUid: 'business-large' }),
      ),
    )
    const page = await open(url, 'support')
    await page.locator('#browsed li').nth(49).waitFor()
    expect(await page.locator('#browsed li').count()).toBe(50)
    await press(page, 'Next page')
    await page.getByText('s-00099').waitFor()
    await search(page, 's-09999')
    await headline(page, 'Not known yet')
    await press(page, 'Show more subscriptions')
    await page.getByText('s-00039').waitFor()
  }, 60_000)

  it('shows many dead entries by their group and page by page, and replays 1,000 at once', async () => {
    const { url, marketplace, target, repair } = await createStage({ isBroken: true })
    let left = 1_100
    async function deliver() {
      while (left-- > 0)
        await post(target, sampleDelivery('application/installed', { business_id: `business-${left}` }))
    }
    await Promise.all(Array.from({ length: 40 }, deliver))
    await until(
      'all entries are dead',
      async () => (await marketplace.health()).counts?.dead === 1_100,
      60_000,
    )

    const page = await open(url, 'operator', '#/attention')
    await page.getByText('1100 entries', { exact: true }).waitFor()
    await press(page, 'Show the entries')
    await page.locator('.entries > ul > li').nth(49).waitFor()
    expect(await page.locator('.entries > ul > li').count()).toBe(50)
    await press(page, 'Older entries')
    await press(page, 'Newer entries')
    repair()
    await press(page, 'Replay the group…')
    await page.getByText('Passes the oldest 1000 of 1100 entries of application/installed').waitFor()
    await page.getByLabel('Reason (recorded with your name)').fill('fixed')
    await press(page, 'Replay 1000 entries')
    const replayed = page.getByText('1000 entries were replayed. 100 remain: replay again for those.')
    await replayed.waitFor({ timeout: 60_000 })
  }, 180_000)

  it('continues a list where its first 2,000 rows end, and a filter that finds nothing among them', async () => {
    const opened = await openStoreWithSql(newFile())
    await addSubscriptions(opened, 2_100, OUR_ITEM)
    await opened.sql(
      `update subscriptions set gone = 'ended', state = null where subscription_uid = 's-0002100'`,
    )
    await addDeadEntries(opened, 2_100)
    const { app, marketplace, url } = await createScene({ store: storeOption(opened.store), worker: false })
    mountConsole(app, marketplace)

    const page = await open(`${url}/ops`, 'operator')
    await page.getByLabel('Show').selectOption('ended')
    await page.getByText('None of these 2000 subscriptions. The next page has others.').waitFor()
    await press(page, 'Next page')
    await page.locator('#browsed').getByText('s-0002100').waitFor()
    await page.getByRole('link', { name: 'Needs attention' }).click()
    await page.getByText('200 entries', { exact: true }).first().waitFor()
    await press(page, 'Older dead entries')
    await page.getByText('10 entries', { exact: true }).first().waitFor()
    await press(page, 'Show the entries')
    await page.locator('.entries > ul > li').nth(9).waitFor()
    await press(page, 'Replay the group…')
    await page.getByText('Passes 10 entries of purchasable_subscription/update').waitFor()
    await press(page, 'Cancel')
    await press(page, 'Newest entries')
    await page.getByText('200 entries', { exact: true }).first().waitFor()
    await page.getByRole('link', { name: 'Health', exact: true }).click()
    await page
      .locator('.legend')
      .getByText(/^[\d,]+\+ failed$/)
      .waitFor()
  })

  it('shows support the class of an error, and by which id an operator finds its text', async () => {
    const stage = await createStage({ isBroken: true })
    await failedInstall(stage)
    const [entry] = await stage.marketplace.journal.list({ status: 'dead' })
    const page = await open(stage.url, 'support', '#/attention')
    await page.getByText(`Error An operator finds the text of the error by the id ${entry?.id}.`).waitFor()
    expect(await page.content()).not.toContain('ledger')
    await press(page, 'Show the entries')
    await press(page, 'Open')
    await page.getByText('Shape (only operators see values)').waitFor()
    expect(await page.content()).not.toContain('ledger')
  })

  it('works behind a proxy that changes the prefix, with and without a slash at the end', async () => {
    const { url, platform } = await createStage()
    platform.install('business-1')
    await platform.settled()
    const proxy = await serve((req, res) => {
      const path = (req.url ?? '').replace(/^\/company\/tools/, '')
      const onwards = request(`${url}${path}`, { method: req.method, headers: req.headers }, (reply) => {
        res.writeHead(reply.statusCode ?? 502, reply.headers)
        reply.pipe(res)
      })
      req.pipe(onwards)
    })
    for (const end of ['', '/', '/?from=a-link']) {
      const page = await open(`${proxy}/company/tools${end}`, 'support')
      await search(page, 'business-1')
      await page.getByText('Delivery application/installed').waitFor()
      await press(page, 'Read again')
      await page.getByText('There is nothing to read').waitFor()
    }
  })

  for (const how of ['as it is', 'without Sec-Fetch-Site, as on plain HTTP'])
    it(`A46 lets no other page of the browser act or read, if the app allows every origin, ${how}`, async () => {
      const { marketplace, platform } = await createScene()
      platform.install('business-1')
      await platform.settled()
      const app = express().use((req, res, next) => {
        if (how !== 'as it is') delete req.headers['sec-fetch-site']
        res.set('access-control-allow-origin', req.get('origin') ?? '*')
        res.set('access-control-allow-credentials', 'true')
        res.set('access-control-allow-headers', req.get('access-control-request-headers') ?? '*')
        if (req.method === 'OPTIONS') res.sendStatus(204)
        else next()
      })
      mountConsole(app, marketplace)
      const base = `${await serve(app)}/ops`
      const other = await serve((_req, res) =>
        res.setHeader('content-type', 'text/html').end('<title>x</title>'),
      )
      const attack = async (call: string) => {
        const read = (path: string, init: RequestInit = {}) =>
          fetch(call + path, { ...init, credentials: 'include' })
        const done: string[] = []
        let token = ''
        for (const path of ['/', '/call/session', '/call/history?business_uid=business-1'])
          await read(path).then(
            async (reply) => {
              done.push(path)
              if (path === '/call/session') token = ((await reply.json()) as { token: string }).token
            },
            () => {},
          )
        const headers = { 'content-type': 'application/json', 'x-console-token': token }
        const body = JSON.stringify({ business_uid: 'business-1', typed: 'business-1', reason: 'x' })
        await read('/call/erase', { method: 'POST', headers, body }).then(
          () => done.push('erase'),
          () => {},
        )
        return done
      }
      const page = await openPage(other, { userAgent: 'operator' })
      const ignored = troubles.length
      expect(await page.evaluate(attack, base)).toEqual([])
      expect(await marketplace.businesses.history('business-1')).not.toEqual([])
      // The browser reports that it shows the page none of the replies.
      expect(troubles.splice(ignored).length).toBeGreaterThan(0)
      // The control: its own page acts.
      const own = await open(base, 'operator')
      await search(own, 'business-1')
      await press(own, 'Read again')
      await own.getByText('There is nothing to read').waitFor()
    })

  for (const [name, options] of Object.entries(LOOKS)) {
    it(`has no violation of axe, fits and is readable on a ${name}`, async () => {
      const stage = await createStage({ isBroken: true })
      await furnish(stage)
      const page = await open(stage.url, 'operator', '', options)
      const fits = (what: string) =>
        check(page, `${what}-${name.replaceAll(' ', '-')}`, options.viewport.width)
      await search(page, 'business-1')
      await page.getByText('First read').waitFor()
      await fits('one-business')
      for (const chapter of CHAPTERS) {
        await page.getByRole('link', { name: chapter }).click()
        await page.getByRole('heading', { level: 1, name: chapter }).waitFor()
        await page.waitForLoadState('networkidle')
        await fits(chapter.toLowerCase().replace(' ', '-'))
        if (chapter !== 'Needs attention') continue
        await press(page, 'Open one')
        await page.getByRole('heading', { name: 'Content' }).waitFor()
        await fits('entry')
        await press(page, 'Close')
        await press(page, 'Replay the group…')
        await page.waitForSelector('#preview')
        await fits('replay')
        await press(page, 'Cancel')
      }
    }, 90_000)
  }

  it('leaves no error in the browser console', () => {
    expect(troubles).toEqual([])
  })
})

interface Stage extends Omit<Scene, 'url'> {
  url: string
  repair(): void
}

/** An app with a console behind its own path. `isBroken`: its handler of installs fails until it is repaired. */
async function createStage(options: { isBroken?: boolean; worker?: false } = {}): Promise<Stage> {
  const scene = await createScene({
    worker: options.worker,
    handlers: { retryDelaysMs: [] },
  })
  let isBroken = options.isBroken ?? false
  if (options.worker !== false)
    scene.marketplace.on('application/installed', () => {
      if (isBroken) throw new Error('Cannot write to ledger 4711')
    })
  mountConsole(scene.app, scene.marketplace)
  return {
    ...scene,
    url: `${scene.url}/ops`,
    repair() {
      isBroken = false
    },
  }
}

/** An install whose entry is dead. */
async function failedInstall({ platform, marketplace }: Stage) {
  platform.install('business-1')
  await until(
    'the entry is dead',
    async () => (await marketplace.journal.list({ status: 'dead' })).length === 1,
  )
}

/** Creates at least one row of each kind. */
async function furnish(stage: Stage) {
  const { platform, deliver, marketplace } = stage
  await failedInstall(stage)
  platform.purchase({ business_uid: 'business-1', payment: 'failed' })
  platform.purchase({ business_uid: 'business-2', payment: 'succeeded' })
  platform.purchase({ business_uid: 'business-3', payment: 'succeeded', purchasable_uid: OTHER_ITEM })
  await deliver({ entity_name: 'invoice', event_type: 'paid', data: { id: 'i-1', total: 12 } })
  await platform.settled()
  await until(
    'all subscriptions are read',
    async () =>
      (await marketplace.isEntitled('business-2')) &&
      (await marketplace.explain('business-1')).reason === 'not_purchased',
  )
}

async function check(page: Page, name: string, width: number) {
  expect({ name, axe: await axeViolations(page) }).toEqual({ name, axe: [] })
  expect({ name, width: await askPage(page, 'neededWidth') }).toEqual({ name, width })
  expect({ name, faint: await askPage(page, 'faintTexts') }).toEqual({ name, faint: [] })
}

function open(url: string, role: RoleName, place = '', options: BrowserContextOptions = {}): Promise<Page> {
  return openPage(`${url}${place}`, { userAgent: role, ...options })
}

async function search(page: Page, pasted: string) {
  await page.getByLabel('Business or subscription').fill(pasted)
  await page.keyboard.press('Enter')
}

function headline(page: Page, words: string) {
  return page
    .locator('#verdict')
    .and(page.getByText(words, { exact: true }))
    .waitFor()
}

function press(page: Page, name: string) {
  return page
    .locator('button')
    .and(page.getByText(name, { exact: true }))
    .first()
    .click()
}

async function tabTo(page: Page, name: string, key = 'Tab'): Promise<void> {
  for (let pressed = 0; pressed < 40; pressed++) {
    if ((await askPage(page, 'focusedWords')) === name) return
    await page.keyboard.press(key)
  }
  throw new Error(`expected to reach "${name}" with ${key}`)
}
