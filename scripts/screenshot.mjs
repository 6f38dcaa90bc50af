// Takes docs/screenshot.png: the example app's page after a purchase, with the Chromium of the tests.
import { spawn } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import chromium from '@sparticuz/chromium'
import { chromium as browserType } from 'playwright-core'

const PROJECT = fileURLToPath(new URL('..', import.meta.url))
const FILE = fileURLToPath(new URL('../docs/screenshot.png', import.meta.url))

const demo = spawn(process.execPath, ['--import', 'tsx', 'example-app/demo.ts'], {
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
  const page = await browser.newPage({ viewport: { width: 1180, height: 760 }, colorScheme: 'light' })
  await page.goto(url)
  await page.getByLabel('Bakery Lindt').check()
  const press = (name) => page.getByRole('button', { name, exact: true }).click()
  await press('Buy and pay')
  await page.getByText('Let in', { exact: true }).first().waitFor()
  await press('Open the report')
  await page.waitForSelector('.bars')
  await page.evaluate('scrollTo(0, 0)')
  await page.screenshot({ path: FILE })
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
