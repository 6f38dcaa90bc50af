/** The text without what people lose or add when they type: case, spaces, dashes and dots. */
export function folded(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s\p{Pd}_.:/#]/gu, '')
}

/** The text as it is, and in the forms in which an identifier may be stored. */
export function formsOf(text: string): string[] {
  const bare = text.replace(/\s/g, '')
  return [...new Set([text, bare, bare.toLowerCase(), bare.toUpperCase()])].filter((form) => form !== '')
}

/**
 * How far an identifier is from a text: 0 if they differ only in what `folded` removes, less than 1 if it begins with the text,
 * else 1 and the number of characters that were mistyped. Undefined if they are not similar.
 */
export function distance(text: string, uid: string): number | undefined {
  const [a, b] = [folded(text), folded(uid)]
  if (a === b) return a === '' ? undefined : 0
  if (a.length >= MIN_BEGINNING && b.startsWith(a)) return 1 - a.length / b.length
  const slips = slipsBetween(a, b, Math.min(MAX_SLIPS, Math.floor(a.length / CHARACTERS_A_SLIP)))
  return slips === undefined ? undefined : 1 + slips
}

/** Shorter texts are the beginning of anything. */
const MIN_BEGINNING = 2
const MAX_SLIPS = 2
const CHARACTERS_A_SLIP = 4

/** The characters to add, leave out, change or swap with the next; undefined if they are more than `most`. */
function slipsBetween(a: string, b: string, most: number): number | undefined {
  if (most < 1 || Math.abs(a.length - b.length) > most) return undefined
  let [before, row]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min(at(row, j) + 1, at(next, j - 1) + 1, at(row, j - 1) + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, at(before, j - 2) + 1)
      next.push(least)
    }
    if (Math.min(...next) > most) return undefined
    before = row
    row = next
  }
  const slips = at(row, b.length)
  return slips > most ? undefined : slips
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY
}
