import { existsSync, readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { createSimulator } from '../../testing/index.js'
import { addressWith } from '../commands/simulate.js'
import { examples, trimmed, webAddress, wholeNumber } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, Stop, USAGE } from '../terminal/exit-codes.js'
import { replaceFile } from '../terminal/files.js'
import { KEYS, readKeys } from './keys.js'
import { createDevLog } from './log.js'
import { recall, remember } from './memory.js'
import { createDevPlay } from './play.js'
import { startDevReceiver } from './receiver.js'
import { devSettings } from './settings.js'

const PORT = 4010

interface DevOptions {
  port: number
  to?: string
  writeEnv?: string
  force?: boolean
  state: string
}

export function addDev(program: Command, act: Act) {
  program
    .command('dev')
    .summary('run the platform on your machine and control it with keys')
    .description(
      'Run the simulated platform on your machine. It delivers to your app (--to), or to a built-in receiver that shows ' +
        'every answer. Press keys to make businesses buy, miss payments and uninstall. Without a terminal, type the ' +
        'same words on the standard input, one on each line.',
    )
    .option(
      '--port <port>',
      'port of the platform API; the token endpoint gets the next port',
      wholeNumber,
      PORT,
    )
    .option(
      '--to <url>',
      'the mount address of the router in your app; the delivery secret is appended',
      webAddress,
    )
    // Not `--env-file`: Node reads that from every command line, and ends if there is no such file.
    .option('--write-env <file>', 'write the settings for your app into a file, for node --env-file', trimmed)
    .option('--force', 'replace that file if it exists with another content')
    .option(
      '--state <file>',
      'with --to: the file that keeps the businesses for the next start',
      trimmed,
      STATE,
    )
    .addHelpText(
      'after',
      `\nKeys:\n${Object.entries(KEYS)
        .map(([key, { word, does }]) => `  ${key}  ${word.padEnd(9)}  ${does}`)
        .join('\n')}\n${examples(
        'dev',
        'dev --to http://localhost:3000/webhooks/marketplace',
        'dev --to http://localhost:3000/hooks \\\n      --write-env .env.marketplace',
      )}`,
    )
    .action(
      act(async (context, { port, to, writeEnv, force = false, state }: DevOptions) => {
        const { out, stdin } = context
        if (port > 65_534) throw new Stop(USAGE, 'Cannot listen: --port must be 0 to 65534')
        const settings = devSettings(await context.options())
        const { app, deliverySecrets } = settings
        const [purchasableUid = ''] = [app.purchasableUid ?? []].flat()
        const [codeName = ''] = [app.codeName ?? []].flat()
        const platform = createSimulator({
          clientId: app.clientId,
          clientSecret: app.clientSecret,
          apps: [{ purchasableUid, codeName }],
          port,
          authPort: port === 0 ? 0 : port + 1,
        })
        const log = createDevLog(out, platform)
        const closers: (() => Promise<void>)[] = [() => platform.close()]
        try {
          const addresses = await platform.start().catch((error: NodeJS.ErrnoException) => {
            if (error.code !== 'EADDRINUSE') throw error
            throw new Stop(USAGE, `Cannot listen: port ${port} or ${port + 1} is in use`, {
              fix: 'Choose another port with --port.',
            })
          })
          if (writeEnv !== undefined) writeSettings(writeEnv, settings.lines('all', addresses), force)
          const receiver =
            to === undefined
              ? await startDevReceiver({ app, platform: addresses, log })
              : { target: await addressWith(deliverySecrets, to), answer: log.taken, async close() {} }
          closers.unshift(receiver.close)
          // The database of the built-in receiver is new at each start.
          const file = to === undefined ? undefined : state
          const first = file === undefined ? 1 : recall(file, platform)
          const keep = (business: number) => file !== undefined && remember(file, platform, business)
          keep(first)
          await platform.registerAll(receiver.target)
          log.started({ ...addresses, to, file, writeEnv, settings })
          const { press } = createDevPlay({ platform, log, first, keep, answer: receiver.answer })
          await readKeys({ stdin, onKey: press, isTerminal: stdin.isTTY === true, signal: out.readerGone })
          return DONE
        } finally {
          log.close()
          for (const close of closers) await close()
        }
      }),
    )
}

const STATE = '.marketplace-dev.json'

/** A file with other content is only replaced if the person wants it. */
function writeSettings(file: string, lines: readonly string[], force: boolean) {
  const text = `${lines.join('\n')}\n`
  if (existsSync(file) && !force && readFileSync(file, 'utf8') !== text)
    throw new Stop(USAGE, `Cannot write ${file}: the file exists already, with other content`, {
      fix: 'Replace it with --force, or choose another file.',
    })
  replaceFile(file, text)
}
