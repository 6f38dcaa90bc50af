import { createInterface } from 'node:readline'

/** The keys of `dev`. Without a terminal, each is typed as a word. */
export const KEYS = {
  b: { word: 'buy', does: 'the business buys the app' },
  m: { word: 'miss', does: 'a payment of the business fails: suspended' },
  c: { word: 'confirm', does: 'the payment arrives: purchased' },
  x: { word: 'cancel', does: 'the business cancels its subscription' },
  u: { word: 'uninstall', does: 'the business uninstalls the app' },
  k: { word: 'break', does: 'stop the platform, or start it again' },
  n: { word: 'next', does: 'continue with another business' },
  '?': { word: 'help', does: 'show these keys' },
  q: { word: 'quit', does: 'end the program' },
} as const

const CTRL_C = '\u0003'
const CTRL_D = '\u0004'

/**
 * Calls `onKey` with each key, or without a terminal with each word, until `onKey` returns `quit`, `signal` is aborted, or
 * the process is interrupted. The end of an input that is not a terminal does not end the program: under a service manager
 * the input is empty.
 */
export function readKeys(options: {
  stdin: NodeJS.ReadStream
  isTerminal: boolean
  signal: AbortSignal
  onKey(key: string): 'quit' | 'on'
}): Promise<void> {
  const { stdin, isTerminal, signal, onKey } = options
  return new Promise((resolve) => {
    // Keeps the process alive when the input has ended.
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
      for (const name of SIGNALS) process.removeListener(name, end)
      signal.removeEventListener('abort', end)
      lines?.close()
      stdin.off('data', onData)
      if (isTerminal) stdin.setRawMode(false)
      stdin.pause()
      resolve()
    }

    for (const name of SIGNALS) process.once(name, end)
    signal.addEventListener('abort', end)
    if (signal.aborted) return end()
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
