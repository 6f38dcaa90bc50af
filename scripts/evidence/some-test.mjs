/** A reporter of jest: a run without a test fails. Jest itself succeeds if no test has the name. */
export default class SomeTest {
  #error

  onRunComplete(_contexts, { numPassedTests, numFailedTests }) {
    if (numPassedTests + numFailedTests > 0) return
    this.#error = new Error('No test was run, because none has this name')
    process.stderr.write(`\n${this.#error.message}\n`)
  }

  getLastError() {
    return this.#error
  }
}
