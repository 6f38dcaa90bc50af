// Bundles the console's page into lib/console/page-bundle.ts: one script and one style, as texts that ship inside the package.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const folder = fileURLToPath(new URL('../lib/console/', import.meta.url))

const { outputFiles } = await build({
  entryPoints: [`${folder}page/main.tsx`, `${folder}page/main.css`],
  bundle: true,
  minify: true,
  write: false,
  outdir: 'out',
  format: 'esm',
  target: ['es2022'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  charset: 'utf8',
})
const textOf = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text.trim()
// The texts must not contain the end tag of their element.
const [script, style] = [textOf('.js').replace(/<\/(script)/gi, '<\\/$1'), textOf('.css')]
if (/<\/style/i.test(style) || /<!--/.test(script)) throw new Error('the page cannot stand inside of HTML')

const source = `/* Made by scripts/build-console-page.mjs from lib/console/page. */
export const SCRIPT: string = ${JSON.stringify(script)}
export const STYLE: string = ${JSON.stringify(style)}
`
const file = `${folder}page-bundle.ts`
// The file is not written if nothing changed, so that later build steps see no change.
if (source !== read(file)) writeFileSync(file, source)

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
