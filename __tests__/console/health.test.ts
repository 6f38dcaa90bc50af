import { describe, expect, it } from '@jest/globals'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { systemClock } from '../../lib/base/clock.js'
import { storeFor } from '../../lib/store-option.js'
import { withStoreFaults } from '../support/engines/store-faults.js'
import { storeOption } from '../support/engines/store-option.js'
import { askPage, axeViolations, openPage, troubles, useBrowser } from '../support/processes/browser.js'
import { createScene } from '../support/scene.js'
import { mountConsole } from '../support/scenes/console.js'

const PHONE = { viewport: { width: 360, height: 740 } }

useBrowser()

describe('Health of the console', () => {
  it('shows the problems, and fits a phone, even if the database does not answer', async () => {
    const store = withStoreFaults(storeFor('sqlite::memory:', systemClock))
    const { marketplace, app, url } = await createScene({ store: storeOption(store) })
    mountConsole(app, marketplace)
    store.faults.add({ on: 'counts', kind: 'unavailable' })
    const page = await openHealth(url)
    await page.getByText('It does not work').waitFor()
    await fits(page)
  })

  it('leaves no error in the browser console', () => {
    expect(troubles).toEqual([])
  })
})

function openHealth(url: string, options: BrowserContextOptions = PHONE): Promise<Page> {
  return openPage(`${url}/ops#/health`, { userAgent: 'support', ...options })
}

async function fits(page: Page) {
  expect(await axeViolations(page)).toEqual([])
  expect(await askPage(page, 'neededWidth')).toBe(PHONE.viewport.width)
  expect(await askPage(page, 'faintTexts')).toEqual([])
}
