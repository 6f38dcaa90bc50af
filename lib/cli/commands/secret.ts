import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { examples } from '../terminal/command-options.js'
import type { Act } from '../terminal/context.js'
import { DONE } from '../terminal/exit-codes.js'

export function addSecret(program: Command, act: Act) {
  program
    .command('secret')
    .summary('generate a delivery secret')
    .description('Generate a strong delivery secret and print it. Nothing is stored.')
    .addHelpText('after', examples('secret', 'secret --json'))
    .action(
      act(async ({ out }) => {
        const secret = randomBytes(24).toString('base64url')
        out.result({ secret }, () => secret)
        out.note('Put it first in DELIVERY_SECRETS, restart the app, and register the address again.')
        return DONE
      }),
    )
}
