import { createInterface } from 'node:readline'

/** What can be pressed, or typed as a word. */
export const KEYS = {
  b: { word: 'buy', does: 'a business buys the app' },
  m: { word: 'miss', does: 'its payment fails: suspended' },
  c: { word: 'confirm', does: 'its payment arrives: purchased' },
  x: { word: 'cancel', does: 'it cancels the subscription' },
  u: { word: 'uninstall', does: 'it uninstalls the app' },
  k: { word: 'break', does: 'the platform breaks down, or comes up again' },
  n: { word: 'next', does: 'go on with another business' },
  '?': { word: 'help', does: 'show these keys' },
  q: { word: 'quit', does: 'end' },
} as const

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'

/**
 * Hands over each key, or without a terminal each word of a line, until `onKey` answers `quit` or the process is
 * interrupted. The end of an input that is not a terminal ends nothing: a service manager gives none.
 */
export function readKeys(options: {
  stdin: NodeJS.ReadStream
  isTerminal: boolean
  onKey(key: string): 'quit' | 'on'
}): Promise<void> {
  const { stdin, isTerminal, onKey } = options
  return new Promise((resolve) => {
    // Without an input nothing else may keep the process alive.
    const alive = setInterval(() => {}, 60_000)
    const lines = isTerminal ? undefined : createInterface({ input: stdin })

    function onData(data: Buffer) {
      for (const key of data.toString('utf8')) {
        if (key === CTRL_C || key === CTRL_D || onKey(key) === 'quit') return end()
      }
    }
    function onLine(line: string) {
      for (const word of line.split(/\s+/).filter(Boolean)) if (onKey(word) === 'quit') return end()
    }
    function end() {
      clearInterval(alive)
      for (const signal of SIGNALS) process.removeListener(signal, end)
      lines?.close()
      stdin.off('data', onData)
      if (isTerminal) stdin.setRawMode(false)
      stdin.pause()
      resolve()
    }

    for (const signal of SIGNALS) process.once(signal, end)
    if (lines) {
      lines.on('line', onLine)
      return
    }
    stdin.setRawMode(true)
    stdin.on('data', onData)
    stdin.resume()
  })
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
