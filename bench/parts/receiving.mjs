import { compareReceiving, RECEIVING_COLUMNS } from '../harness/receive.mjs'
import { withRatios } from '../harness/statistics.mjs'
import { BODY, SECRET } from '../servers/deliveries.mjs'

/** Measures receiving beside servers that store nothing, on every installed Node. */
export async function receiving(bench) {
  const { runtimes, platformUrl, quick, newStore } = bench
  const servers = runtimes.all.flatMap((runtime) => {
    const { id, path: node, version } = runtime
    const role = runtime === runtimes.judged ? 'judged' : 'own'
    const name = (text) => `${text}, Node ${version.split('.')[0]}`
    const ours = (front, text) => ({
      id: `${role}/${front}`,
      name: name(text),
      file: 'marketplace',
      node,
      path: `/x/${SECRET}`,
      prepare: async (round) => ({
        store: await newStore('sqlite', `receiving-${id}-${front}-${round}`),
        platformUrl,
        front,
      }),
    })
    return [
      {
        id: `${role}/express-json`,
        name: name('Express 5 + express.json(), keeps nothing'),
        file: 'express-json',
        node,
      },
      {
        id: `${role}/bare-http`,
        name: name('bare node:http + JSON.parse, keeps nothing'),
        file: 'bare-http',
        node,
      },
      ours('express', 'marketplace-webhooks in Express 5, SQLite'),
      ours('plain', 'marketplace-webhooks as a plain listener, SQLite'),
    ]
  })
  const rounds = quick ? 1 : 7
  const seconds = quick ? 0.6 : 4
  const rows = await compareReceiving({ servers, rounds, seconds, bench, body: BODY })
  return {
    title: 'Receiving',
    about: `64 connections, one and the same body of one subscription, without handlers, ${rounds} rounds of ${seconds} s after some thousand requests to warm up; each server alone, in a new process.`,
    columns: [...RECEIVING_COLUMNS, { id: 'ratio', name: '× express.json()', digits: 2 }],
    rows: withRatios(rows, 'perSecond', (id) => id.replace(/\/.*/, '/express-json')),
  }
}
