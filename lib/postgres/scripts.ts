import type { Script, Step } from '../store/dialect.js'
import { createAnswers, isOutdated } from './answers.js'
import type { PostgresConnection } from './connection.js'
import type { PostgresConnections } from './pool.js'
import type { PreparedStatements } from './prepared.js'
import { explained, settings } from './transactions.js'

/**
 * Runs a script as one transaction, in one message: an answer that rarely changes is assumed (`answers.ts`), and a
 * connection keeps the statements that it often runs (`prepared.ts`). Before other answers the message ends. It has
 * literals instead of parameters, since a message of several statements has no parameters.
 */
export function createScripts(options: {
  connections: PostgresConnections
  schema: string
  statements: PreparedStatements
}) {
  const { connections, schema, statements } = options
  const begin = `begin; ${settings(schema, 'kept')}`
  const answers = createAnswers()

  async function run<T>(script: Script<T>, connection: PostgresConnection): Promise<T> {
    let message = statements.arePlansOld(connection.session) ? `discard plans; ${begin}` : begin
    const send = async (more: string) => {
      const text = `${message}${message && '; '}${more}`
      message = ''
      return connection.query(text)
    }
    const callOf = async ({ text, literal }: Call) => {
      const prepared = statements.use(connection.session, text)
      if (!prepared) return literal === undefined ? text : text.replaceAll('$1', () => literal)
      if (!prepared.isReady) await send(`prepare ${prepared.name} as ${text}`)
      prepared.isReady = true
      return literal === undefined ? `execute ${prepared.name}` : `execute ${prepared.name}(${literal})`
    }
    let next = script.next([])
    while (!next.done) {
      const step: Step = next.value
      const assumed = step.isSteady && answers.assume(step.query.text)
      if (step.isSteady && !assumed) {
        next = script.next(answers.keep(step.query.text, await send(answers.ask(step.query.text))))
        continue
      }
      const call = await callOf(assumed ? assumed.check : withLiteral(step))
      if (step.answers && !assumed) {
        next = script.next(await send(call))
      } else {
        message += `${message && '; '}${call}`
        next = script.next(assumed ? assumed.rows : [])
      }
    }
    await send('commit')
    return next.value
  }

  return async function runScript<T>(script: () => Script<T>): Promise<T> {
    return explained(async () => {
      const connection = await connections.acquire()
      try {
        for (;;) {
          try {
            return await run(script(), connection)
          } catch (error) {
            // If this fails too, the connection is broken, and the server rolls back by itself.
            await connection.query('rollback').catch(() => {})
            if (!isOutdated(error)) throw error
            answers.forget()
          }
        }
      } finally {
        connection.release()
      }
    })
  }
}

/** A statement. With a `literal`, `$1` in its text stands for it. */
interface Call {
  text: string
  literal?: string
}

/** In place of a parameter: the rows of a step, as JSON. */
export const ROWS = Symbol('rows')

function withLiteral({ query, rows }: Step): Call {
  if (query.values.length === 0) return { text: query.text }
  // Without `$` nothing ends the literal early, and ASCII is the same in every encoding. JSON.stringify leaves no NUL.
  const json = JSON.stringify(rows).replace(
    /[$\u007f-\uffff]/g,
    (odd) => `\\u${odd.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  // Every parameter is the rows.
  return { text: query.text.replace(/\$\d+/g, '$1'), literal: `$$${json}$$` }
}
