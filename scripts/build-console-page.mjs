// Bundles the console's page into lib/console/page-bundle.ts: one script and one style, as texts that ship inside the package.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const folder = fileURLToPath(new URL('../lib/console/', import.meta.url))

const { outputFiles, metafile } = await build({
  entryPoints: [`${folder}page/main.tsx`, `${folder}page/main.css`],
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  outdir: 'out',
  format: 'esm',
  target: ['es2022'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  charset: 'utf8',
})
const textOf = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text.trim()
requireLicences(Object.keys(metafile.inputs))
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

/** Throws if the package ships the code of another one without its licence. */
function requireLicences(inputs) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const shipped = read(`${root}THIRD-PARTY-LICENSES`) ?? ''
  const packages = inputs.map((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1]).filter(Boolean)
  for (const name of new Set(packages))
    if (!shipped.includes(readFileSync(`${root}node_modules/${name}/LICENSE`, 'utf8').trim()))
      throw new Error(`The page of the console contains ${name}: add its licence to THIRD-PARTY-LICENSES`)
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
