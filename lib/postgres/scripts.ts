import type { Script, Step } from '../store/dialect.js'
import { createAnswers, isOutdated } from './answers.js'
import type { PostgresConnection } from './connection.js'
import type { PostgresConnections } from './pool.js'
import { explained, settings } from './transactions.js'

/**
 * Runs a script as one transaction, in one message: an answer that rarely changes is assumed (`answers.ts`). Before other
 * answers the message ends. It has literals instead of parameters: a message of several statements has no parameters, and
 * behind a pooler a prepared statement may be missing from the next connection.
 */
export function createScripts(connections: PostgresConnections, schema: string) {
  const begin = `begin; ${settings(schema)}`
  const answers = createAnswers()

  async function run<T>(script: Script<T>, connection: PostgresConnection): Promise<T> {
    let message = begin
    const send = async (more: string) => {
      const text = `${message}${message && '; '}${more}`
      message = ''
      return connection.query(text)
    }
    let next = script.next([])
    while (!next.done) {
      const step: Step = next.value
      const assumed = step.isSteady && answers.assume(step.query.text)
      if (assumed) {
        message += `; ${assumed.check}`
        next = script.next(assumed.rows)
      } else if (step.isSteady) {
        next = script.next(answers.keep(step.query.text, await send(answers.ask(step.query.text))))
      } else if (step.answers) {
        next = script.next(await send(withLiterals(step)))
      } else {
        message += `${message && '; '}${withLiterals(step)}`
        next = script.next([])
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

/** In place of a parameter: the rows of a step, as JSON. */
export const ROWS = Symbol('rows')

function withLiterals({ query, rows }: Step): string {
  if (query.values.length === 0) return query.text
  // Without `$` nothing ends the literal early, and ASCII is the same in every encoding. JSON.stringify leaves no NUL.
  const json = JSON.stringify(rows).replace(
    /[$\u007f-\uffff]/g,
    (odd) => `\\u${odd.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return query.text.replace(/\$\d+/g, () => `$$${json}$$`)
}
