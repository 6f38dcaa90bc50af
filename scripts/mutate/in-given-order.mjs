import { createRequire } from 'node:module'
import { relative } from 'node:path'

const { default: Sequencer } = createRequire(import.meta.url)('@jest/test-sequencer')

/** Runs test files in the order in which the command line of jest names them. */
export default class InGivenOrder extends Sequencer {
  sort(tests) {
    const place = ({ path }) => process.argv.indexOf(relative('', path))
    return [...tests].sort((a, b) => place(a) - place(b))
  }
}
