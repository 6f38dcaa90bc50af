import { describe, expect, it } from '@jest/globals'
import { createTurns } from '../../lib/store/accepting/turns.js'

interface Item {
  kind: number
  weight: number
  at: number
}

describe('turns', () => {
  it('go by class while nobody is owed anything, and in the order of arrival within a class', () => {
    const { arrange } = turns()
    const items = [item(2, 1), item(0, 2), item(3, 3), item(0, 4), item(1, 5)]
    expect(arrange(items).map(({ at }) => at)).toEqual([2, 4, 5, 1, 3])
  })

  it.each([1, 2, 3])('give class %i an eighth beside any number of the others', (kind) => {
    const { served } = flood({ flooding: [0, 1, 2, 3].filter((other) => other !== kind), kind, weight: 1 })
    expect(served).toBeGreaterThanOrEqual(400 / 8 - 2)
  })

  it('count the weight: what weighs as much as a hundred others comes a hundredth as often', () => {
    const { served } = flood({ flooding: [0], kind: 3, weight: 100, takes: 2_000 })
    expect([1, 2, 3]).toContain(served)
  })

  it('owe nothing to a class that did not wait', () => {
    const { arrange, took } = turns()
    for (let i = 0; i < 100; i++) for (const each of arrange([item(0, i)])) took(each)
    const both = [
      ...Array.from({ length: 20 }, (_, i) => item(0, i)),
      ...Array.from({ length: 20 }, (_, i) => item(2, i)),
    ]
    expect(
      arrange(both)
        .slice(0, 8)
        .map(({ kind }) => kind),
    ).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  })
})

const item = (kind: number, at: number, weight = 1): Item => ({ kind, weight, at })
const turns = () => createTurns<Item>({ classOf: ({ kind }) => kind, weightOf: ({ weight }) => weight })

/** Takes one after the other, while enough of each class waits all the time; returns how many of `kind` were taken. */
function flood({
  flooding,
  kind,
  weight,
  takes = 400,
}: {
  flooding: number[]
  kind: number
  weight: number
  takes?: number
}) {
  const { arrange, took } = turns()
  let served = 0
  for (let at = 0; at < takes; at++) {
    const [next] = arrange([
      item(kind, at, weight),
      ...flooding.flatMap((each) => [item(each, at), item(each, at)]),
    ])
    if (!next) break
    took(next)
    if (next.kind === kind) served++
  }
  return { served }
}
