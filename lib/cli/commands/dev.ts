import type { Command } from 'commander'
import { createSimulator } from '../../testing/index.js'
import { examples, webAddress, wholeNumber } from '../command-options.js'
import type { Act } from '../context.js'
import { KEYS, readKeys } from '../dev-keys.js'
import { createDevLog } from '../dev-log.js'
import { createDevPlay } from '../dev-play.js'
import { startDevReceiver } from '../dev-receiver.js'
import { DONE, Stop, USAGE } from '../exit-codes.js'
import { addressWith } from './simulate.js'

const PORT = 4010

export function addDev(program: Command, act: Act) {
  program
    .command('dev')
    .summary('the platform on your machine, with keys to play it')
    .description(
      'Run the simulated platform on your machine. It delivers to your app (--to), or else to a small receiver of its ' +
        'own that shows every answer. Press keys to let businesses buy, miss payments and uninstall. Without a terminal ' +
        'it reads the same words from the standard input, one on a line.',
    )
    .option('--port <port>', 'of the platform API; the token endpoint has the next', wholeNumber, PORT)
    .option(
      '--to <url>',
      'where your app has mounted the router; the delivery secret is put behind it',
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
        if (port > 65_534) throw new Stop(USAGE, 'Cannot listen: expected a port from 0 to 65534')
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
            throw new Stop(USAGE, `Port ${port} or ${port + 1} is taken`, { mend: 'Choose another: --port' })
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
