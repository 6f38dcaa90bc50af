import { describe, expect, it } from '@jest/globals'
import { auditUid, createUidRemoval } from '../../../lib/store/journal/audit.js'

describe('auditUid', () => {
  it('is the SHA-256 of the uid in UTF-8', () => {
    // printf %s abc | sha256sum
    expect(auditUid('abc')).toBe('sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
    expect(auditUid('é')).toBe('sha256:4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c')
  })
})

describe('the removal of identifiers from a text', () => {
  const b1 = auditUid('b1')

  it.each([
    ['b1', b1],
    ['B1 and b1', `${b1} and ${b1}`],
    ['(b1), b1. b1_2 _b1_', `(${b1}), ${b1}. ${b1}_2 _${b1}_`],
    ['b12 ab1 1b1', 'b12 ab1 1b1'],
    ['der Kunde b1 läuft', `der Kunde ${b1} läuft`],
    ['客b1户', `客${b1}户`],
    ['nothing', 'nothing'],
    ['s-1 of b1, s-1-b1', `[erased] of ${b1}, [erased]`],
    ['#7 a#7 #7b', '[erased] a[erased] #7b'],
    ['a.b axb', '[erased] axb'],
  ])('%j becomes %j', (text, expected) => {
    expect(createUidRemoval('b1', ['s-1', 's-1-b1', '#7', 'a.b'])(text)).toBe(expected)
  })

  it.each(['İstanbul', 'ΑΣ', 'ẞ-1', 'ŉ', '\u212a'])(
    'finds %s as it was given, whatever its lower case is',
    (uid) => {
      const text = `of ${uid}. ${uid}.Α ${uid}`
      const hash = auditUid(uid)
      expect(createUidRemoval(uid)(text)).toBe(`of ${hash}. ${hash}.Α ${hash}`)
      expect(createUidRemoval('b', [uid])(text)).toBe('of [erased]. [erased].Α [erased]')
    },
  )

  it('leaves no part of a longer uid, and does not look into its own hash', () => {
    expect(createUidRemoval('b', ['b-b', 'sha256', '0'])('b b-b sha256 0')).toBe(
      `${auditUid('b')} [erased] [erased] [erased]`,
    )
  })
})
