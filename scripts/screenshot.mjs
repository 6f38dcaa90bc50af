// Takes docs/screenshot.png: the demo's page in the story of a purchase, with the code of its next button open, by the Chromium of the
// tests.
import { spawn } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import chromium from '@sparticuz/chromium'
import { chromium as browserType } from 'playwright-core'

const PROJECT = fileURLToPath(new URL('..', import.meta.url))
const FILE = fileURLToPath(new URL('../docs/screenshot.png', import.meta.url))

const demo = spawn(process.execPath, ['--import', 'tsx', 'example-app/demo/main.ts'], {
  cwd: PROJECT,
  env: { ...process.env, PORT: '0' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
try {
  const url = await addressOf(demo)
  const browser = await browserType.launch({
    executablePath: await chromium.executablePath(),
    args: chromium.args.filter((arg) => arg !== '--single-process'),
  })
  const page = await browser.newPage({ viewport: { width: 1180, height: 1200 }, colorScheme: 'light' })
  await page.goto(url)
  await page.locator('.cover', { hasText: 'A customer pays' }).click()
  for (const step of ['Step 2 of 3', 'Step 3 of 3']) {
    await page.locator('#story-press .primary').click()
    await page.getByText(step, { exact: true }).waitFor()
  }
  await page.locator('#story-press .opener').click()
  await page.getByText('Your onPurchaseChange is called').waitFor()
  const { y, height } = await page.locator('.way').boundingBox()
  await page.screenshot({ path: FILE, clip: { x: 0, y: 0, width: 1180, height: y + height + 20 } })
  await browser.close()
  console.log(`${FILE}: ${Math.round((await stat(FILE)).size / 1024)} KiB`)
} finally {
  demo.kill('SIGINT')
}

function addressOf({ stdout }) {
  return new Promise((resolve, reject) => {
    let printed = ''
    stdout.on('data', (chunk) => {
      printed += chunk
      const [, address] = /^Open (\S+)$/m.exec(printed) ?? []
      if (address) resolve(address)
    })
    stdout.on('end', () => reject(new Error(`the demo printed no address: ${printed}`)))
  })
}
