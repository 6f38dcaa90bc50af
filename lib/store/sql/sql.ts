/**
 * A template tag for SQL: values become parameters, and other statements may be parts of a statement.
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

/** The name of a table or a column. A dot separates a table from its column. */
sql.ref = (name: string): Sql => sql.raw(name.split('.').map(quoted).join('.'))

/** A constant in the text, not a parameter: so a partial index with this constant can serve the statement. */
sql.lit = (value: string | number): Sql =>
  sql.raw(typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`)

/**
 * A condition that must not choose an index, beside one that finds the rows. Without statistics SQLite might search the
 * index of a status instead, and read all of its rows for a batch of a hundred.
 */
sql.still = (condition: Sql): Sql => sql`(${condition}) is true`

/** SQL text, unchanged. Never pass input to it. */
sql.raw = <Row = unknown>(text: string): Sql<Row> => new Sql([text], [])

/** Values or parts with a separator between them. */
sql.join = (items: readonly unknown[], separator = ', '): Sql => {
  const flat = new Flat('')
  items.forEach((item, i) => {
    if (i > 0) flat.addText(separator)
    flat.add(item)
  })
  return new Sql(flat.texts, flat.values)
}

/** A statement or a part of one. `Row` is the shape of its rows. */
export class Sql<Row = unknown> {
  /** `texts` are the parts between the values, so there is one text more than values. */
  constructor(
    readonly texts: readonly string[],
    readonly values: readonly unknown[],
  ) {}

  async execute(db: Connection): Promise<Row[]> {
    return (await db.query(this.compile(db.placeholder))) as Row[]
  }

  /** The row of a statement that always returns one, such as a count. */
  async one(db: Connection): Promise<Row> {
    const [row] = await this.execute(db)
    if (!row) throw new Error('the server returned no row')
    return row
  }

  compile(placeholder: Connection['placeholder']): Query {
    const [first, ...rest] = this.texts
    const text = rest.reduce((before, next, i) => before + placeholder(i + 1) + next, first as string)
    return { text, values: this.values }
  }
}

/** A statement for an engine. */
export interface Query {
  text: string
  values: readonly unknown[]
  /** Whether it reads tables only by their unique indexes: a plan of it is good for any number of rows. */
  keepsPlan?: boolean
}

/** Runs statements: in a transaction or, on SQLite, also outside of one. */
export interface Connection {
  /**
   * The rows that a statement returns; every number of SQL is a number. Statements run in the order of the calls, also of those
   * that do not wait for the one before. Rejects with a `MarketplaceError`.
   */
  query(query: Query): Promise<unknown[]>
  /** The placeholder of the parameter with this number, from 1. */
  placeholder(number: number): string
}

/** Collects the texts and values of a statement and its parts. */
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

/** A name in SQL text, as it is. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
