import { format, stripVTControlCharacters } from 'node:util'
import { jest } from '@jest/globals'
import createDebug from 'debug'
import { onCleanUp } from './clean-up.js'

/** Keeps the warnings of the process from the terminal until the end of the test. Returns the spy that gets them. */
export function quietWarnings() {
  const spy = jest.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onCleanUp(() => spy.mockRestore())
  return spy
}

/** The lines of the log from now on, of all areas. */
export function captureDebug(): string[] {
  const lines: string[] = []
  const { log } = createDebug
  createDebug.enable('marketplace-webhooks:*')
  createDebug.log = (...args: unknown[]) => lines.push(stripVTControlCharacters(format(...args)))
  onCleanUp(() => {
    createDebug.log = log
    createDebug.disable()
  })
  return lines
}
