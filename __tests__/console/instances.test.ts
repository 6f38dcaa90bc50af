import { describe, expect, it } from '@jest/globals'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { MINUTE, systemClock } from '../../lib/clock.js'
import { storeFor } from '../../lib/store-option.js'
import { VERSION } from '../../lib/version.js'
import { askPage, axeViolations, openPage, troubles, useBrowser } from '../support/browser.js'
import { mountConsole } from '../support/console.js'
import { useEngine } from '../support/engines.js'
import { createScene, openMarketplace } from '../support/scene.js'
import { withStoreFaults } from '../support/store-faults.js'
import { storeOption } from '../support/store-option.js'
import { openStoreWithSql } from '../support/store-with-sql.js'

const PHONE = { viewport: { width: 360, height: 740 } }

useBrowser()

describe('Health of the console', () => {
  const engine = useEngine('PostgreSQL')

  it('shows the schema version, and every instance until it closes or has not reported for three minutes', async () => {
    const store = await engine.freshAddress()
    const { platform, marketplace, app, url } = await createScene({ store })
    mountConsole(app, marketplace)
    await marketplace.deployment()
    const receiver = openMarketplace(platform, { store, worker: false })
    await receiver.deployment()
    const page = await openHealth(url)
    const own = [`${VERSION} this one`, 'reads and handles', 'just now', 'just now']
    expect(await rows(page)).toEqual([own, [VERSION, 'only receives', 'just now', 'just now']])
    await page.locator('dt:text("Schema version") + dd').getByText('2', { exact: true }).waitFor()
    expect(await page.getByText('different versions').count()).toBe(0)
    await fits(page)

    const old = await openStoreWithSql(store)
    await old.store.reportInstance({
      id: 'old',
      version: '0.0.9',
      hasWorker: true,
      startedAgoMs: 90 * MINUTE,
      forgetMs: MINUTE,
    })
    await receiver.close()
    await page.reload()
    await page.getByText('a rolling deployment, or an instance that was not updated').waitFor()
    expect(await rows(page)).toEqual([['0.0.9', 'reads and handles', '90 min ago', 'just now'], own])
    await fits(page)

    await old.sql(`update instances set seen_at = seen_at - ${3 * MINUTE} where id = 'old'`)
    await page.reload()
    await page.getByText('this one').waitFor()
    expect((await rows(page)).map(([version]) => version)).toEqual([own[0]])
  })

  it('shows the problems even if the instances cannot be read', async () => {
    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    const { marketplace, app, url } = await createScene({ store: storeOption(store) })
    mountConsole(app, marketplace)
    store.faults.add({ on: ['instances', 'counts'], kind: 'unavailable' })
    const page = await openHealth(url)
    await page.getByText('The database does not answer.').waitFor()
    await page.getByText('It does not work').waitFor()
  })

  it('leaves no error in the browser console', () => {
    expect(troubles).toEqual([])
  })
})

function openHealth(url: string, options: BrowserContextOptions = PHONE): Promise<Page> {
  return openPage(`${url}/ops#/health`, { userAgent: 'support', ...options })
}

/** The texts of the table, row by row. Waits until the page shows them. */
async function rows(page: Page): Promise<string[][]> {
  await page.locator('.instances').waitFor()
  const found = await page.locator('.instances tbody tr').all()
  const texts = await Promise.all(found.map((row) => row.locator('td').allInnerTexts()))
  return texts.map((row) => row.map((text) => text.replace(/^\d+ s ago$/, 'just now')))
}

async function fits(page: Page) {
  expect(await axeViolations(page)).toEqual([])
  expect(await askPage(page, 'neededWidth')).toBe(PHONE.viewport.width)
  expect(await askPage(page, 'faintTexts')).toEqual([])
}
