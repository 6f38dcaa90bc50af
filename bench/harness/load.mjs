import { startChild } from './child.mjs'

/**
 * A busy disk may occasionally make a delivery too late for its reply. With more than this share, the figures are
 * worthless.
 */
const MAX_REFUSED = 0.001

/**
 * The load generator, in a process of its own.
 *
 * `post({ port, path, headers, body, connections, durationMs | count, spread, perSecond })` posts on keep-alive connections, each
 * sending the next request when its reply is there, with `perSecond` not before its time. Seven zeros in a row, `0000000`, in the body stand for a number
 * below `spread`, which differs from request to request. Resolves with `{ requests, requestsPerSecond, p50Ms, p99Ms,
 * loadCpu }`, where `loadCpu` is the share of a core that the generator itself took: near 1 it is the bottleneck.
 *
 * `flood({ port, path, bodies, perSecond, seconds })` sends whether or not the replies come. Resolves with the numbers of those that
 * were `sent`, `taken` (200), `refused` (503), and the `seconds`.
 */
export async function startLoad({ node, cores, onRefused }) {
  const child = await startChild('harness/load-process.mjs', {}, { node, cores })
  return {
    async post(target) {
      const result = await child.ask('post', { connections: 64, spread: 0, headers: {}, ...target })
      if (result.refused === 0) return result
      const text = `${result.refused} of ${result.requests} requests were refused: ${result.firstRefusal.split('\r\n')[0]}`
      if (result.refused / result.requests > MAX_REFUSED) throw new Error(text)
      onRefused(text)
      return result
    },
    flood: (target) => child.ask('flood', target),
    stop: child.stop,
  }
}
