import { MarketplaceError } from '../errors.js'
import type { ImportLine, ImportProgress } from './import-results.js'

/**
 * How `subscriptions.import` goes through its lines.
 *
 * @example
 * const onProgress = ({ done, total }) => console.log(done, 'of', total)
 * await marketplace.subscriptions.import(lines, { announce: false, onProgress, signal: AbortSignal.timeout(60_000) })
 */
export interface ImportOptions {
  /** False: the changes these reads find do not reach `onPurchaseChange`. See `track`. Default true. */
  announce?: boolean
  /**
   * Called with the result of each line, once, one call at a time. If it returns a promise, the import waits for it and
   * takes no further lines. If it throws, the import ends and rejects with the same error.
   */
  onProgress?(progress: ImportProgress, line: ImportLine): unknown
  /** Ends the import, which then resolves with the results so far. */
  signal?: AbortSignal
  /** How long to wait while no read is answered, in ms. Default 2 min. */
  answerTimeoutMs?: number
}

/** Throws `argument_invalid` for an unknown option, or one of the wrong type. */
export function checkedOptions(options: ImportOptions | undefined): ImportOptions {
  const expected: Record<keyof ImportOptions, [form: string, isValid: (value: never) => boolean]> = {
    announce: ['true or false', (value) => typeof value === 'boolean'],
    onProgress: ['a function', (value) => typeof value === 'function'],
    signal: ['an AbortSignal', (value: AbortSignal) => typeof value?.addEventListener === 'function'],
    answerTimeoutMs: ['a number of ms above 0', (value) => Number.isFinite(value) && value > 0],
  }
  for (const [name, value] of Object.entries(options ?? {})) {
    const [form, isValid] = expected[name as keyof ImportOptions] ?? []
    if (form && (value === undefined || isValid?.(value as never))) continue
    const known = Object.keys(expected).join(', ')
    const why = form ? `${name} must be ${form}` : `unknown option ${name}; the options are ${known}`
    throw new MarketplaceError('argument_invalid', `Cannot import subscriptions: ${why}`)
  }
  return options ?? {}
}
