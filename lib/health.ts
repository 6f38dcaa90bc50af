/**
 * The problems of one part, one sentence each with a hint where to look. `failing` takes the instance out of
 * rotation.
 */
export interface Problems {
  failing: string[]
  degraded: string[]
}

export function mergeProblems(parts: readonly Problems[]): Problems {
  return {
    failing: parts.flatMap(({ failing }) => failing),
    degraded: parts.flatMap(({ degraded }) => degraded),
  }
}
