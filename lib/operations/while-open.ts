/** Wraps a method of the marketplace, so that it rejects with `closed` after `close()`. */
export type WhileOpen = <Arguments extends unknown[], T>(
  call: (...given: Arguments) => Promise<T>,
) => (...given: Arguments) => Promise<T>
