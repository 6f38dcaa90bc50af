import { ENGINES } from './harness/databases.mjs'

/**
 * The aims of the project. `part`, `row` and `column` select a figure. With `over` (a row) or `overColumn` (a column),
 * it is divided by another figure, round by round. `atLeast` or `atMost` is the bound; the median decides,
 * or the greatest of all rounds with `isWorst`.
 */
const both = (aim) => Object.entries(ENGINES).map(([engine, name]) => aim(engine, name))

export const AIMS = [
  aim(
    'receiving: CPU in Express 5, beside express.json() that keeps nothing',
    at('receiving', 'judged/express', 'cpuMicros'),
    { over: 'judged/express-json', atMost: 1.15 },
  ),
  aim('receiving: CPU as a plain listener, beside the same', at('receiving', 'judged/plain', 'cpuMicros'), {
    over: 'judged/express-json',
    atMost: 1,
  }),
  aim('receiving: p99 in Express 5, beside its p99', at('receiving', 'judged/express', 'p99Ms'), {
    over: 'judged/express-json',
    atMost: 1,
  }),
  aim('receiving: p99 as a plain listener, beside its p99', at('receiving', 'judged/plain', 'p99Ms'), {
    over: 'judged/express-json',
    atMost: 1,
  }),
  aim('durable: on SQLite, beside BullMQ', at('durable', 'sqlite', 'perSecond'), {
    over: 'bullmq',
    atLeast: 1.5,
  }),
  aim('durable: on SQLite, beside an insert per request', at('durable', 'sqlite', 'perSecond'), {
    over: 'insert-sqlite',
    atLeast: 2.5,
  }),
  aim(
    'durable: CPU of process and server on PostgreSQL, beside an insert per request',
    at('durable', 'postgres', 'allCpuMicros'),
    { over: 'insert-postgres', atMost: 0.6 },
  ),
  ...['pg-boss', 'graphile-worker'].flatMap((peer) =>
    both((engine, name) =>
      aim(`durable: on ${name}, beside ${peer}`, at('durable', engine, 'perSecond'), {
        over: peer,
        atLeast: 6,
      }),
    ),
  ),
  ...both((engine, name) =>
    aim(
      `draining: events a second on ${name}, handlers return at once`,
      at('draining', engine, 'perSecond'),
      {
        atLeast: engine === 'sqlite' ? 15_000 : 8_000,
        digits: 0,
      },
    ),
  ),
  ...both((engine, name) =>
    aim(`draining: longest gap of the event loop on ${name}, ms`, at('draining', engine, 'gapMs'), {
      atMost: 25,
      digits: 1,
      isWorst: true,
    }),
  ),
  ...both((engine, name) =>
    aim(
      `backlog: receiving on ${name} with the largest one, beside an empty queue`,
      at('backlog', `${engine}/large`, 'perSecond'),
      {
        over: `${engine}/large/empty`,
        atLeast: 1 / 1.2,
      },
    ),
  ),
  ...both((engine, name) =>
    aim(
      `backlog: delivery to handler on ${name}, beside an empty queue`,
      at('backlog', `${engine}/large`, 'handledMs'),
      {
        over: `${engine}/large/empty`,
        atMost: 1.2,
      },
    ),
  ),
  ...both((engine, name) =>
    aim(
      `backlog: a look for work on ${name}, beside an empty queue`,
      at('backlog', `${engine}/large`, 'lookMs'),
      {
        over: `${engine}/large/empty`,
        atMost: 1.2,
      },
    ),
  ),
  aim(
    'snapshot: CPU of receiving a delivery, process and server, beside a transaction that is open, beside none',
    at('snapshot', 'open', 'receivingMicros'),
    { over: 'quiet', atMost: 1.2 },
  ),
  aim(
    'snapshot: CPU of a delivery with its read and handlers, process and server, beside a transaction that is open, beside none',
    at('snapshot', 'open', 'allCpuMicros'),
    { over: 'quiet', atMost: 1.2 },
  ),
  ...[
    ['readsMs', 'claims of reads'],
    ['lanesMs', 'claims of entries'],
  ].map(([column, what]) =>
    aim(`snapshot: ${what} beside a transaction that is open, beside none`, at('snapshot', 'open', column), {
      over: 'quiet',
      atMost: 1.5,
    }),
  ),
  ...both((engine, name) =>
    Object.entries({
      flood: '',
      full: ', a store that is full of it',
      slow: ', slow reads and handlers',
    }).flatMap(([kind, beside]) => {
      return [
        ...[
          ['decidedP99Ms', 'delivery to the new answer'],
          ['changedP99Ms', 'delivery to the handler of the change'],
          ['handledP99Ms', 'delivery to the handler of the event'],
          ['pageP99Ms', 'a page'],
        ].map(([column, what]) =>
          aim(
            `flood: p99 of ${what} of a known customer on ${name}${beside}, ms`,
            at('flood', `${engine}/${kind}`, column),
            { atMost: 1_000, digits: 0 },
          ),
        ),
        aim(
          `flood: refused deliveries of known customers on ${name}${beside}`,
          at('flood', `${engine}/${kind}`, 'refused'),
          { atMost: 0, digits: 0 },
        ),
      ]
    }),
  ).flat(),
  ...both((engine, name) => [
    aim(`sizes: receiving on ${name}, largest beside smallest`, at('sizes', `${engine}/large`, 'perSecond'), {
      over: `${engine}/small`,
      atLeast: engine === 'sqlite' ? 0.77 : 0.6,
    }),
    aim(`sizes: start on ${name} at the largest, ms`, at('sizes', `${engine}/large`, 'startMs'), {
      atMost: 100,
      digits: 0,
    }),
    ...[
      ['handledMs', 'delivery to handler'],
      ['lookMs', 'a look for work'],
      ['coldMs', 'a cold isEntitled'],
      ['listMs', 'journal.list'],
      ['healthMs', 'health()'],
      ['sweepMs', 'a sweep that finds nothing'],
      ['deleteMs', 'a sweep of 100 entries'],
    ].map(([column, what]) =>
      aim(`sizes: ${what} on ${name}, largest beside smallest`, at('sizes', `${engine}/large`, column), {
        over: `${engine}/small`,
        atMost: 1.3,
      }),
    ),
    ...[
      ['gapMs', 'receiving'],
      ['handlingGapMs', 'handling'],
    ].map(([column, what]) =>
      aim(
        `sizes: longest gap of the event loop, ${what} on ${name} at the largest, ms`,
        at('sizes', `${engine}/large`, column),
        { atMost: 25, digits: 1, isWorst: true },
      ),
    ),
    aim(
      `isEntitled: cold on ${name}, beside the store's point read`,
      at('sizes', `${engine}/large`, 'coldMs'),
      {
        overColumn: 'pointReadMs',
        atMost: 2,
      },
    ),
  ]).flat(),
  aim('isEntitled: warm, beside an awaited lru-cache get', at('entitlement', 'is-entitled', 'ns'), {
    over: 'bare-get',
    atMost: 2,
  }),
  aim(
    'convergence: asked-for subscriptions, beside a bare fetch loop',
    at('convergence', 'package', 'seconds'),
    {
      over: 'bare',
      atMost: 1.15,
    },
  ),
  aim(
    'convergence: CPU of a first read with its token, decision and change, beside the two bare fetches',
    at('convergence', 'package-at-once', 'cpuMicros'),
    { over: 'bare-at-once', atMost: 2 },
  ),
  aim('convergence: reads for 10,000 deliveries of one subscription', at('convergence', 'burst', 'reads'), {
    atMost: 2,
    digits: 0,
  }),
  aim(
    'convergence: 1,000 changes a second seen by four instances on PostgreSQL, lag of the last quarter beside the first',
    at('convergence', 'four-instances', 'lagMs'),
    { overColumn: 'firstLagMs', atMost: 1.5 },
  ),
  aim('starting: import of the package, ms', at('starting', 'postgres-again', 'importMs'), {
    atMost: 80,
    digits: 0,
  }),
  aim('memory: RSS of the last quarter of the deliveries, beside the second', at('memory', 'rss', 'last'), {
    overColumn: 'second',
    atMost: 1.1,
  }),
]

function at(part, row, column) {
  return { part, row, column }
}

function aim(text, figure, rule) {
  return { text, ...figure, digits: 2, ...rule }
}
