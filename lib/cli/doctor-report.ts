import { stopFor } from './exit-codes.js'
import { wrapped } from './layout.js'
import type { Output } from './output.js'

/** What a check found. `skipped` could not be looked at; only `failed` makes the program end with 1. */
export interface Finding {
  status: 'ok' | 'warning' | 'failed' | 'skipped'
  /** What was seen, or the cause. */
  text: string
  /** What to do. */
  mend?: string | undefined
}

export const ok = (text: string): Finding => ({ status: 'ok', text })
export const warning = (text: string, mend: string): Finding => ({ status: 'warning', text, mend })
export const failed = (text: string, mend?: string): Finding => ({ status: 'failed', text, mend })
export const skipped = (text: string, mend?: string): Finding => ({ status: 'skipped', text, mend })

export interface Check extends Finding {
  check: string
}

/** Runs checks one after the other, and shows each as soon as it is over. */
export function createReport(out: Output) {
  const checks: Check[] = []

  function add(check: string, finding: Finding) {
    checks.push({ check, ...finding })
    if (out.isJson) return
    const { status, text, mend } = finding
    const paint = {
      ok: out.paint.good,
      warning: out.paint.unsure,
      failed: out.paint.bad,
      skipped: out.paint.dim,
    }
    const indent = ' '.repeat(INDENT)
    const lines = [...linesOf(text, out.width), ...(mend ? linesOf(`Mend: ${mend}`, out.width) : [])]
    const [first = '', ...rest] = lines
    const head = `${paint[status](status.padEnd(7))}  ${check.padEnd(NAME)}  ${first}`
    out.result(null, () => [head, ...rest.map((line) => indent + line)].join('\n'))
  }

  return {
    checks,
    add,
    /** What the check throws is a failure, with its cause and mend. */
    async run(check: string, look: () => Promise<Finding>): Promise<boolean> {
      const finding = await look().catch((error) => {
        const { message, mend } = stopFor(error)
        return failed(message, mend)
      })
      add(check, finding)
      return finding.status === 'ok' || finding.status === 'warning'
    },
    hasFailed: () => checks.some(({ status }) => status === 'failed'),
  }
}

const NAME = 8
const INDENT = 7 + 2 + NAME + 2

/** Lines of SQL stay as they are, to be copied. */
function linesOf(text: string, width: number): string[] {
  return text.split('\n').flatMap((line) => wrapped(line, width - INDENT))
}
