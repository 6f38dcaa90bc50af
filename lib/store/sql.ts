/**
 * One SQL for both engines: `sql` is a template tag whose values become parameters, and parts of statements are values
 * like any other.
 *
 * @example
 * const due = sql`refresh_at <= ${now}`
 * const rows = await sql<{ subscription_uid: string }>`select subscription_uid from subscriptions where ${due}`.execute(connection)
 */
export function sql<Row = unknown>(texts: TemplateStringsArray, ...values: unknown[]): Sql<Row> {
  const flat = new Flat(texts[0] as string)
  values.forEach((value, i) => {
    flat.add(value)
    flat.addText(texts[i + 1] as string)
  })
  return new Sql(flat.texts, flat.values)
}

/** A name of a table or a column; of a column of a table with a dot. */
sql.ref = (name: string): Sql => sql.raw(name.split('.').map(quoted).join('.'))

/** A value that is part of the text: for what never changes, so that an index on this very value can serve it. */
sql.lit = (value: string | number): Sql =>
  sql.raw(typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`)

/** Text as it stands. Never of what comes from outside. */
sql.raw = <Row = unknown>(text: string): Sql<Row> => new Sql([text], [])

/** Values or parts, one after the other. */
sql.join = (items: readonly unknown[], separator = ', '): Sql => {
  const flat = new Flat('')
  items.forEach((item, i) => {
    if (i > 0) flat.addText(separator)
    flat.add(item)
  })
  return new Sql(flat.texts, flat.values)
}

/** A statement, or a part of one, whose rows have the shape `Row`. */
export class Sql<Row = unknown> {
  /** One text more than values: each value stands between two texts. */
  constructor(
    readonly texts: readonly string[],
    readonly values: readonly unknown[],
  ) {}

  async execute(connection: Connection): Promise<Row[]> {
    return (await connection.query(this.compile(connection.placeholder))) as Row[]
  }

  compile(placeholder: Connection['placeholder']): Query {
    const [first, ...rest] = this.texts
    const text = rest.reduce((before, next, i) => before + placeholder(i + 1) + next, first as string)
    return { text, values: this.values }
  }
}

/** A statement as an engine takes it. */
export interface Query {
  text: string
  values: readonly unknown[]
}

/** What statements run on: in a transaction, or on SQLite also outside of one. */
export interface Connection {
  /** The rows that a statement returns. Rejects with a `MarketplaceError`. */
  query(query: Query): Promise<unknown[]>
  /** Stands for the parameter of this number, from 1. */
  placeholder(number: number): string
}

/** Texts and values of a statement whose parts are taken in. */
class Flat {
  readonly texts: string[]
  readonly values: unknown[] = []

  constructor(first: string) {
    this.texts = [first]
  }

  addText(text: string) {
    this.texts[this.texts.length - 1] += text
  }

  add(value: unknown) {
    if (!(value instanceof Sql)) {
      this.values.push(value)
      this.texts.push('')
      return
    }
    this.addText(value.texts[0] as string)
    this.values.push(...value.values)
    this.texts.push(...value.texts.slice(1))
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
