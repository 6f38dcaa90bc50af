import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(__dirname, '..', '..', '..')

/** README and every page of docs/, by their paths in the project. */
export const PAGES: ReadonlyMap<string, string> = new Map(
  [
    'README.md',
    ...readdirSync(join(ROOT, 'docs'))
      .filter((file) => file.endsWith('.md'))
      .map((file) => `docs/${file}`),
  ].map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]),
)

export function page(path: string): string {
  const text = PAGES.get(path)
  if (text === undefined) throw new Error(`there is no page ${path}`)
  return text
}

export type Row = Readonly<Record<string, string>>

/** Every table that has these columns, on all pages. */
export function tablesWith(...columns: string[]): { path: string; rows: Row[] }[] {
  const found = [...PAGES].flatMap(([path, text]) =>
    tablesOf(text)
      .filter(({ head }) => head.join() === columns.join())
      .map(({ rows }) => ({ path, rows })),
  )
  if (found.length === 0) throw new Error(`no page has a table with the columns ${columns.join(', ')}`)
  return found
}

/**
 * The rows of the only table that has these columns, on any page. Throws when no page has the table, or when two tables
 * have these columns: a fact has one place.
 */
export function tableWith(...columns: string[]): Row[] {
  const [table, ...others] = tablesWith(...columns)
  if (others.length > 0) throw new Error(`the table ${columns.join(', ')} stands twice: ${others[0]?.path}`)
  return table?.rows ?? []
}

function tablesOf(text: string): { head: string[]; rows: Row[] }[] {
  return (withoutCode(text).match(/(?:^\|.*\|\n)+/gm) ?? []).map((table) => {
    const [first = [], , ...rows] = table.trim().split('\n').map(cells)
    const head = first.map((name) => name.replaceAll('`', ''))
    return { head, rows: rows.map((row) => Object.fromEntries(head.map((name, i) => [name, row[i] ?? '']))) }
  })
}

function cells(row: string): string[] {
  return row
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())
}

/** The texts between backticks. */
export function names(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string)
}

export interface Snippet {
  /** `README.md`, or `docs/gate.md`. */
  page: string
  language: string
  /** The words after the language, which readers do not see, such as `no-run`. */
  marks: string[]
  code: string
  /** The name in the first line (`// app.ts`), or else a name made from the snippet's number on the page. */
  file: string
  /** The lines that the snippet prints: the `text` block directly after it. */
  prints: string[]
}

/** The code blocks of a page in `languages`, in their order. */
export function snippetsOf(path: string, languages: readonly string[]): Snippet[] {
  const blocks = [...page(path).matchAll(/^```(\w+)([^\n]*)\n([\s\S]*?)^```$/gm)]
  return blocks.flatMap(([, language = '', marks = '', code = ''], i) => {
    if (!languages.includes(language)) return []
    const [, nextLanguage, , text = ''] = blocks[i + 1] ?? []
    return {
      page: path,
      language,
      marks: marks.trim().split(/\s+/).filter(Boolean),
      code,
      file:
        /^\/\/ ([\w./-]+\.[mc]?[jt]s)$/m.exec(code)?.[1] ??
        `snippet-${i + 1}.${language === 'js' ? 'mjs' : 'ts'}`,
      prints: nextLanguage === 'text' ? text.trim().split('\n') : [],
    }
  })
}

/** The anchors that GitHub makes from a page's headings, and the explicit ones (`<a id>`). */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id as string))
  for (const [, title = ''] of withoutCode(text).matchAll(/^#{1,6} (.*)$/gm)) {
    const slug = title
      .toLowerCase()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    let [anchor, count] = [slug, 0]
    while (anchors.has(anchor)) anchor = `${slug}-${++count}`
    anchors.add(anchor)
  }
  return anchors
}

/** The targets of a page's links and pictures, without those in code. */
export function linksOf(text: string): string[] {
  return [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)|src="([^"]+)"/g)].map(
    ([, a, b]) => (a ?? b) as string,
  )
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '')
}
