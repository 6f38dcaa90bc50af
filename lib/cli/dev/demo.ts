import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { findSqlite } from '../../sqlite/drivers.js'
import { examples, wholeNumber } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, FAULT, INTERRUPTED, NO, Stop, USAGE } from '../terminal/exit-codes.js'

/** Built from `example-app` by `scripts/build-demo.mjs`, beside `dist/cli/main.js`, into which this file is bundled. */
const SCRIPT = fileURLToPath(new URL('../demo/demo/main.js', import.meta.url))
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export function addDemo(program: Command, act: Act) {
  program
    .command('demo')
    .summary('try the package: a paid app, a simulated platform, and the console')
    .description(
      'Run a small paid app with a simulated platform, and print the address of a page to play with both. The page links to ' +
        'the console of the app. Everything is on this machine, and Ctrl+C removes it. Exit code 1: the demo failed.',
    )
    .option('--port <port>', 'port of the page; 0 takes a free one', wholeNumber, 0)
    .option('--once', 'play the life of a subscription in the terminal, without a page')
    .addHelpText('after', examples('demo', 'demo --once'))
    .action(
      act(async ({ env, out }, { port, once: isOnce }: { port: number; once?: true }) => {
        if (out.isJson) throw new Stop(USAGE, 'The demo has no JSON output', { fix: 'Leave out --json.' })
        if (!existsSync(SCRIPT)) throw new Stop(FAULT, 'The demo is not built', { fix: 'Run npm run build.' })
        const sqlite = await findSqlite()
        const packages = `marketplace-webhooks express${sqlite.name === 'libsql' ? ' libsql' : ''}`
        out.note(`The demo of marketplace-webhooks. For your app: npm install ${packages}`)
        const demo = spawn(process.execPath, [SCRIPT, ...(isOnce ? ['--once'] : [])], {
          env: { ...env, PORT: String(port) },
          stdio: 'inherit',
        })
        // It ends itself, after its app, and removes its database.
        const end = () => void demo.kill('SIGTERM')
        for (const signal of SIGNALS) process.on(signal, end)
        try {
          const [code] = await once(demo, 'exit')
          return code === 0 ? DONE : code === INTERRUPTED ? INTERRUPTED : NO
        } finally {
          for (const signal of SIGNALS) process.removeListener(signal, end)
        }
      }),
    )
}
