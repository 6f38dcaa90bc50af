/** What is wrong with one part, one sentence each, with what to look at. `failing` takes the instance out of rotation. */
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
