// Builds the demo of example-app into dist/demo, for the command `demo`: each file as JavaScript on dist/lib, its page, and the
// sources of which the page shows pieces.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const from = join(root, 'example-app')
const to = join(root, 'dist', 'demo')

function copy(source, file) {
  mkdirSync(dirname(join(to, file)), { recursive: true })
  copyFileSync(source, join(to, file))
}

const files = readdirSync(from, { recursive: true, encoding: 'utf8' }).map((file) =>
  file.replaceAll('\\', '/'),
)
for (const file of files) {
  if (file.startsWith('demo/page/')) copy(join(from, file), file)
  if (!file.endsWith('.ts')) continue
  const { code } = await transform(readFileSync(join(from, file), 'utf8'), { loader: 'ts', target: 'es2022' })
  mkdirSync(dirname(join(to, file)), { recursive: true })
  writeFileSync(join(to, file.replace(/\.ts$/, '.js')), code)
}
copy(join(root, 'lib/console/page/css/look.css'), 'demo/page/look.css')

const { PLACES } = await import(join(to, 'demo', 'code-pieces.js'))
for (const file of new Set(Object.values(PLACES).flatMap((places) => places.map(([, named]) => named))))
  copy(join(from, file), file)
