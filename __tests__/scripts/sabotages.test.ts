import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { LATER_SABOTAGES } from '../support/world/later-sabotages.js'
import type { DocumentedSabotage } from '../support/world/sabotage.js'
import { SABOTAGED_SOURCES } from '../support/world/sabotaged-sources.js'

const LIB = join(__dirname, '..', '..', 'lib')

describe('the sabotages that change a file of the package', () => {
  it.each<[string, DocumentedSabotage['source']]>(
    [...SABOTAGED_SOURCES, ...LATER_SABOTAGES].flatMap(({ what, source }) =>
      source ? [[what, source]] : [],
    ),
  )('find their place, and only one: %s', (_what, source) => {
    const { file, from } = source as NonNullable<typeof source>
    expect(readFileSync(join(LIB, file), 'utf8').split(from)).toHaveLength(2)
  })
})
