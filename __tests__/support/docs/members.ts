import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface Source {
  /** The text of each interface and type that the file declares, by its name. */
  types: ReadonlyMap<string, string>
  /** Where the names come from that the file imports or passes on. */
  from: ReadonlyMap<string, { file: string; name: string }>
}

/** A type, and those of its members that have no docstring, with their names. */
export interface Documented {
  name: string
  members: string[]
  bare: string[]
}

/**
 * The types that a caller sees who imports from `entries`: those that they export, and all that these mention. A member is
 * also one of an object inside a type, because an editor shows its docstring too.
 */
export function typesSeen(entries: readonly string[]): Documented[] {
  const sources = new Map<string, Source>()
  const sourceOf = (file: string) => {
    const source = sources.get(file) ?? parse(file)
    sources.set(file, source)
    return source
  }
  const seen = new Map<string, Documented>()
  function see(file: string, name: string): void {
    const { types, from } = sourceOf(file)
    const text = types.get(name)
    const origin = from.get(name)
    if (text === undefined) {
      if (origin) see(origin.file, origin.name)
      return
    }
    const key = `${file} ${name}`
    if (seen.has(key)) return
    seen.set(key, { name, ...membersOf(text) })
    for (const [mentioned] of withoutComments(text).matchAll(/\b[A-Z]\w*\b/g)) see(file, mentioned)
  }
  for (const entry of entries) for (const name of sourceOf(entry).from.keys()) see(entry, name)
  return [...seen.values()]
}

function parse(file: string): Source {
  const text = readFileSync(file, 'utf8')
  const types = new Map(
    // A declaration begins at the margin, and so does the next one or its docstring.
    text.split(/^(?=[a-z/])/m).flatMap((block): [string, string][] => {
      const [, name] = /^(?:export )?(?:interface|type) (\w+)/.exec(block) ?? []
      return name === undefined ? [] : [[name, block]]
    }),
  )
  const from = new Map<string, { file: string; name: string }>()
  for (const [, names = '', path = ''] of text.matchAll(NAMES_FROM)) {
    const target = join(dirname(file), path.replace(/\.js$/, '.ts'))
    if (!existsSync(target)) continue
    for (const each of names.split(',')) {
      const [name, local = name] = each
        .trim()
        .replace(/^type /, '')
        .split(' as ')
      if (name) from.set(local as string, { file: target, name })
    }
  }
  return { types, from }
}

/** What a file imports or passes on from another file of the package. */
const NAMES_FROM = /^(?:import|export) (?:type )?\{([^}]*)\} from '(\.[^']*)'/gm

/**
 * The members of a type, and those that no docstring precedes directly. In an object on one line none can have a docstring,
 * except among the arguments of a method.
 */
function membersOf(text: string): Pick<Documented, 'members' | 'bare'> {
  const [members, bare]: [string[], string[]] = [[], []]
  let [isDocumented, isComment] = [false, false]
  /** The brackets around the line. */
  const open: string[] = []
  for (const line of text.split('\n').map((each) => each.trim())) {
    if (isComment || line.startsWith('/**')) {
      isComment = !line.endsWith('*/')
      isDocumented = !isComment
      continue
    }
    if (line === '' || line.startsWith('//')) continue
    const [, name] = /^(?:readonly )?(\w+|'[^']+')\??(?=[:(<])/.exec(line) ?? []
    // Inside the parentheses of a method or angle brackets, a name is an argument.
    if (name && open.includes('{') && !open.includes('(') && !open.includes('<')) {
      members.push(name)
      if (!isDocumented) bare.push(name)
    }
    isDocumented = false
    const inOne = /[(<]/.test(open.join('')) ? [] : line.replace(/\([^()]*\)/g, '').matchAll(/\{ [^{}]+ \}/g)
    for (const [object] of inOne)
      for (const [, name = ''] of object.matchAll(/[{;] (?:readonly )?(\w+)\??:/g)) {
        members.push(name)
        bare.push(name)
      }
    const code = line.replace(/'[^']*'|=>/g, '')
    for (const { 0: bracket, index } of code.matchAll(/[(){}<>]/g)) {
      if (')}>'.includes(bracket)) open.pop()
      else open.push(bracket === '(' && !/[\w>?]/.test(code[index - 1] ?? '') ? 'group' : bracket)
    }
  }
  return { members, bare }
}

function withoutComments(text: string): string {
  return text.replace(/\/\*\*[\s\S]*?\*\/|\/\/.*$/gm, '')
}
