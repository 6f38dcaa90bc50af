import { nameOf } from './businesses.js'
import type { Happening, Kind } from './timeline.js'

const KINDS: Record<Kind, string> = {
  platform: 'platform',
  delivery: 'delivery →',
  token: 'token ←',
  read: 'read ←',
  change: 'change',
  event: 'app',
  decision: 'decision',
  visit: 'visit',
  demo: 'demo',
}

type Style = 'bold' | 'dim' | 'good' | 'bad'
const CODES: Record<Style, number> = { bold: 1, dim: 2, good: 32, bad: 31 }

/** Writes events as aligned lines, with colours on a terminal only. */
export function createTerminalLog(out: NodeJS.WriteStream) {
  const isColoured = out.isTTY && !process.env.NO_COLOR
  const begun = Date.now()
  const print = (line: string) => out.write(`${line}\n`)

  function paint(text: string, style: Style | undefined): string {
    return isColoured && style ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text
  }

  return {
    heading: (text: string) => print(`\n${paint(text, 'bold')}`),
    line: print,
    happening({ at, kind, text, tone, business_uid }: Happening) {
      const seconds = ((at - begun) / 1_000).toFixed(3).padStart(8)
      const whose =
        business_uid && !text.startsWith(nameOf(business_uid))
          ? paint(`  ${nameOf(business_uid)}`, 'dim')
          : ''
      const styled = paint(text, tone === 'plain' ? undefined : tone)
      print(`${paint(seconds, 'dim')}  ${KINDS[kind].padEnd(11)} ${styled}${whose}`)
    },
    good: (text: string) => print(paint(`${' '.repeat(10)}✓ ${text}`, 'good')),
    bad: (text: string) => print(paint(`${' '.repeat(10)}✗ ${text}`, 'bad')),
  }
}
