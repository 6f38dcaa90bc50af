/**
 * Returns which of the delivery secrets this is, counted from 0; of an unknown one, 0. Only for candidates that were
 * found right by `createSecretCheck`: who sends them knows one secret, and the time this takes gives away no other.
 */
export function createWhichSecret(secrets: readonly string[]): (candidate: string) => number {
  return (candidate) => (secrets.length === 1 ? 0 : Math.max(0, secrets.indexOf(candidate)))
}
