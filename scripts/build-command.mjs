// Bundles lib/cli into dist/cli/main.js, which imports the rest of lib from dist/lib.
import { dirname, join, relative } from 'node:path'
import { build } from 'esbuild'

/** Returns the path of the built program. */
export async function buildCommand(root) {
  const [cli, lib] = [join(root, 'lib', 'cli'), join(root, 'dist', 'lib')]
  const outfile = join(root, 'dist', 'cli', 'main.js')
  await build({
    absWorkingDir: root,
    entryPoints: [join(cli, 'main.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'es2022',
    packages: 'external',
    plugins: [{ name: 'the rest of lib is not bundled', setup }],
  })
  return outfile

  function setup({ onResolve }) {
    onResolve({ filter: /^\./ }, ({ importer, path }) => {
      const file = join(dirname(importer), path)
      if (!file.startsWith(cli))
        return {
          external: true,
          path: relative(dirname(outfile), join(lib, relative(join(root, 'lib'), file))).replaceAll(
            '\\',
            '/',
          ),
        }
    })
  }
}
