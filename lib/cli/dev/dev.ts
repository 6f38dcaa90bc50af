import type { Command } from 'commander'
import { createSimulator } from '../../testing/index.js'
import { addressWith } from '../commands/simulate.js'
import { examples, webAddress, wholeNumber } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE, Stop, USAGE } from '../terminal/exit-codes.js'
import { KEYS, readKeys } from './keys.js'
import { createDevLog } from './log.js'
import { createDevPlay } from './play.js'
import { startDevReceiver } from './receiver.js'

const PORT = 4010

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
    .addHelpText(
      'after',
      `\nKeys:\n${Object.entries(KEYS)
        .map(([key, { word, does }]) => `  ${key}  ${word.padEnd(9)}  ${does}`)
        .join('\n')}\n${examples('dev', 'dev --to http://localhost:3000/webhooks/marketplace')}`,
    )
    .action(
      act(async (context, { port, to }: { port: number; to?: string }) => {
        const { out, stdin } = context
        if (port > 65_534) throw new Stop(USAGE, 'Cannot listen: --port must be 0 to 65534')
        const { app, deliverySecrets = [] } = await context.options()
        const { clientId = 'dev-app', clientSecret = 'dev-client-secret' } = app ?? {}
        const [purchasableUid = 'dev-item'] = [app?.purchasableUid ?? []].flat()
        const [codeName = 'dev-app'] = [app?.codeName ?? []].flat()
        const platform = createSimulator({
          clientId,
          clientSecret,
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
          let target = to
          if (to === undefined) {
            const receiver = await startDevReceiver({
              app: { clientId, clientSecret, purchasableUid, codeName },
              platform: addresses,
              log,
            })
            closers.unshift(receiver.close)
            target = receiver.target
          } else if ([deliverySecrets].flat().length > 0) target = await addressWith(deliverySecrets, to)
          await platform.registerAll(target as string)
          log.started({ ...addresses, clientId, purchasableUid, codeName, to })
          const play = createDevPlay({ platform, log })
          await readKeys({ stdin, onKey: play.press, isTerminal: stdin.isTTY === true })
          return DONE
        } finally {
          log.close()
          for (const close of closers) await close()
        }
      }),
    )
}
