import { FIXES, stopFor } from '../terminal/exit-codes.js'
import { wrapped } from '../terminal/layout.js'
import type { Output } from '../terminal/output.js'

/** The result of a check. `skipped`: the check could not run. Only `failed` makes the program end with 1. */
export interface Finding {
  status: 'ok' | 'warning' | 'failed' | 'skipped'
  /** What the check found, or the cause of a failure. */
  text: string
  /** What to do next. */
  fix?: string | undefined
}

export const ok = (text: string): Finding => ({ status: 'ok', text })
export const warning = (text: string, fix: string): Finding => ({ status: 'warning', text, fix })
export const failed = (text: string, fix?: string): Finding => ({ status: 'failed', text, fix })
export const skipped = (text: string, fix?: string): Finding => ({ status: 'skipped', text, fix })

export interface Check extends Finding {
  check: string
}

/** Runs checks one after the other, and shows each result at once. */
export function createReport(out: Output) {
  const checks: Check[] = []

  function add(check: string, finding: Finding) {
    checks.push({ check, ...finding })
    if (out.isJson) return
    const { status, text, fix } = finding
    const paint = {
      ok: out.paint.good,
      warning: out.paint.unsure,
      failed: out.paint.bad,
      skipped: out.paint.dim,
    }
    const indent = ' '.repeat(INDENT)
    const lines = [...linesOf(text, out.width), ...(fix ? linesOf(`Fix: ${fix}`, out.width) : [])]
    const [first = '', ...rest] = lines
    const head = `${paint[status](status.padEnd(7))}  ${check.padEnd(NAME)}  ${first}`
    out.result(null, () => [head, ...rest.map((line) => indent + line)].join('\n'))
  }

  return {
    checks,
    add,
    /** An error that the check throws is a failure, with its cause and the way to fix it. */
    async run(check: string, look: () => Promise<Finding>, fixes = FIXES): Promise<boolean> {
      const finding = await look().catch((error) => {
        const { message, fix } = stopFor(error, fixes)
        return failed(message, fix)
      })
      add(check, finding)
      return finding.status === 'ok' || finding.status === 'warning'
    },
    hasFailed: () => checks.some(({ status }) => status === 'failed'),
  }
}

const NAME = 8
const INDENT = 7 + 2 + NAME + 2

/** Line ends stay, so that lines of SQL can be copied. */
function linesOf(text: string, width: number): string[] {
  return text.split('\n').flatMap((line) => wrapped(line, width - INDENT))
}
