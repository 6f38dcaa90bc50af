import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { forWholeFile } from '../support/clean-up.js'
import { faultsOf, type Resolution } from '../types/compile.js'
import { createProject, type Project } from './installed-package.js'

/** `npm run test:types` also tests every version between the two, each under every resolution, strict and not. */
const OLDEST = join(dirname(require.resolve('oldest-typescript')), 'node_modules', 'typescript')

describe('the types, in an app that has installed the package', () => {
  let project: Project

  beforeAll(async () => {
    project = await forWholeFile(async () => createProject())
  })

  it.each<[string, Resolution, boolean, string | undefined]>([
    ['the oldest TypeScript', 'node10', true, OLDEST],
    ["the project's TypeScript", 'nodenext', false, undefined],
    ["the project's TypeScript", 'bundler', true, undefined],
  ])(
    'are correct for %s under %s, strict: %s',
    async (_name, resolution, isStrict, typescript) => {
      const given = typescript === undefined ? {} : { typescript }
      expect(await faultsOf(project, { resolution, isStrict, ...given })).toEqual([])
    },
    300_000,
  )
})
