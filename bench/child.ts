import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'

/** A process of `bench/servers`, run by plain Node as an app would be: without a loader, in production mode. */
export interface Child {
  port: number
  /** What the process says of itself when it is asked `question`; see `bench/servers/serve.mjs`. */
  ask<Answer>(question: string): Promise<Answer>
  stop(): Promise<void>
}

/** Starts `bench/servers/<file>` and gives it back when it listens. Rejects when it ends before that. */
export async function startChild(file: string, args: readonly string[] = []): Promise<Child> {
  const child = fork(join('bench', 'servers', file), args, {
    execArgv: [],
    env: { ...process.env, NODE_ENV: 'production', NODE_OPTIONS: '' },
  })
  const { port } = await answerOf<{ port: number }>(child, file)
  return {
    port,
    ask(question) {
      const answer = answerOf<never>(child, file)
      child.send(question)
      return answer
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.disconnect()
      await ended
    },
  }
}

/** Questions are asked one at a time, so the next message is the answer. */
function answerOf<Answer>(child: ChildProcess, file: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const onExit = () => reject(new Error(`${file} has ended`))
    child.once('exit', onExit)
    child.once('message', (answer) => {
      child.off('exit', onExit)
      resolve(answer as Answer)
    })
  })
}
