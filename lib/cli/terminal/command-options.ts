import { InvalidArgumentError } from 'commander'

/** A whole number. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.')
  return Number(text)
}

/** For an option that may be given more than once. */
export function collected(text: string, before: string[] = []): string[] {
  return [...before, trimmed(text)]
}

/** The text without the white space around it, which people paste. Without any text it is a mistake: a variable that is not set. */
export function trimmed(text: string): string {
  const value = text.trim()
  if (value === '') throw new InvalidArgumentError('The value is empty.')
  return value
}

/** An absolute http or https address. */
export function webAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return text
  throw new InvalidArgumentError('Expected an absolute address that begins with https:// or http://.')
}

/** Examples below a command's help. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ marketplace-webhooks ${line}`).join('\n')}`
}
