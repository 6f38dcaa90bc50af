/**
 * Writes docs/api, or the given folder: a page for each entry point of the package. Fails when a name has no docstring,
 * or a function that people call has no example.
 */
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Application } from 'typedoc'
import { withoutDocstring, withoutExample } from './docstrings.mjs'
import { ENTRY_POINTS, OPTIONS } from './options.mjs'
import { Router } from './router.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const root = dirname(here)
const out = resolve(process.argv[2] ?? join(root, 'docs', 'api'))

const app = await Application.bootstrapWithPlugins({
  ...OPTIONS,
  entryPoints: Object.values(ENTRY_POINTS).map((file) => join(root, file)),
  tsconfig: join(here, 'tsconfig.json'),
  out,
})
app.renderer.defineRouter('exports', Router)
const project = await app.convert()
if (project === undefined) process.exit(1)
nameModules(project)
app.validate(project)
for (const name of withoutDocstring(project)) app.logger.warn(`${name} has no docstring`)
for (const name of withoutExample(project)) app.logger.warn(`${name} has no @example`)
if (app.logger.hasErrors() || app.logger.hasWarnings()) process.exit(1)
await app.generateOutputs(project)

function nameModules(project) {
  for (const [name, file] of Object.entries(ENTRY_POINTS)) {
    const folder = file.split('/').at(-2)
    const module = project.children.find((each) => each.name === (folder === 'lib' ? 'index' : folder))
    module.name = name
  }
}
