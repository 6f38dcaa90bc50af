import { MarketplaceError } from '../errors.js'
import type { ImportLine, ImportProgress } from './import-results.js'

/**
 * How `importSubscriptions` goes through its lines.
 *
 * @example
 * const onProgress = ({ done, total }) => console.log(done, 'of', total)
 * await marketplace.importSubscriptions(lines, { announce: false, onProgress, signal: AbortSignal.timeout(60_000) })
 */
export interface ImportOptions {
  /** False: what these reads find makes no change for `onPurchaseChange`. See `track`. Default true. */
  announce?: boolean
  /**
   * Called once for each line that has its result, one call at a time. A promise is waited for, and meanwhile no further
   * lines are taken. What it throws ends the import, which then rejects with it.
   */
  onProgress?(progress: ImportProgress, line: ImportLine): unknown
  /** Ends the import: it resolves with what was done until then. */
  signal?: AbortSignal
  /** How long to wait while not one read is answered, in ms. Default 2 min. */
  answerTimeoutMs?: number
}

/** Throws `argument_invalid` for what is not an option, or not of its type. */
export function checkedOptions(options: ImportOptions | undefined): ImportOptions {
  const expected: Record<keyof ImportOptions, [what: string, isOne: (value: never) => boolean]> = {
    announce: ['true or false', (value) => typeof value === 'boolean'],
    onProgress: ['a function', (value) => typeof value === 'function'],
    signal: ['an AbortSignal', (value: AbortSignal) => typeof value?.addEventListener === 'function'],
    answerTimeoutMs: ['a number of ms above 0', (value) => Number.isFinite(value) && value > 0],
  }
  for (const [name, value] of Object.entries(options ?? {})) {
    const [what, isOne] = expected[name as keyof ImportOptions] ?? []
    if (what && (value === undefined || isOne?.(value as never))) continue
    const known = Object.keys(expected).join(', ')
    const why = what ? `expected ${what} as ${name}` : `${name} is not one of its options, which are ${known}`
    throw new MarketplaceError('argument_invalid', `Cannot import subscriptions: ${why}`)
  }
  return options ?? {}
}
