/**
 * Returns the index of a delivery secret in the list; 0 for an unknown one. Only for candidates that `createSecretCheck`
 * has accepted: their sender knows one secret, and the time of this lookup reveals no other.
 */
export function createWhichSecret(secrets: readonly string[]): (candidate: string) => number {
  return (candidate) => (secrets.length === 1 ? 0 : Math.max(0, secrets.indexOf(candidate)))
}
