/** `{ median, min, max }` of some numbers; NaN if there are none. */
export function spreadOf(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (index) => sorted[index] ?? Number.NaN
  const middle = (sorted.length - 1) / 2
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    min: at(0),
    max: at(sorted.length - 1),
  }
}

export const medianOf = (values) => spreadOf(values).median

/** Divides figures of the same round, so that other work of the machine affects both. */
export function ratios(of, by) {
  return of.slice(0, by.length).map((value, round) => value / by[round])
}

/** Adds a column `ratio` to rows: the figure of `column`, divided by that of the row with the id `over(id)`. */
export function withRatios(rows, column, over) {
  const valuesOf = (id) => rows.find((row) => row.id === id)?.values[column]
  return rows.map((row) => {
    const [of, by] = [valuesOf(row.id), valuesOf(over(row.id))]
    return of && by ? { ...row, values: { ...row.values, ratio: ratios(of, by) } } : row
  })
}

/** The order of a round. Every second one is the former order reversed, so that an item does not always follow the same other. */
export function inOrderOf(round, list) {
  const at = Math.floor(round / 2) % Math.max(1, list.length)
  const order = [...list.slice(at), ...list.slice(0, at)]
  return round % 2 === 0 ? order : order.reverse()
}

/**
 * Measures each item once in every round; the order changes from round to round. `measure(item)` resolves with numbers
 * by column. The result has a list for each column, by the item's `id`.
 */
export async function inRounds({ items, rounds, measure, note }) {
  const results = new Map(items.map(({ id }) => [id, {}]))
  for (let round = 0; round < rounds; round++) {
    for (const item of inOrderOf(round, items)) {
      note(`round ${round + 1} of ${rounds}: ${item.name}`)
      for (const [column, value] of Object.entries(await measure(item, round))) {
        results.get(item.id)[column] ??= []
        results.get(item.id)[column].push(value)
      }
    }
  }
  return items.map(({ id, name }) => ({ id, name, values: results.get(id) }))
}
