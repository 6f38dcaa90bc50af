import { businessOf, notice, SECRET } from '../servers/deliveries.mjs'
import { until } from './databases.mjs'

/**
 * Fills an empty store with `count` subscriptions. `app` makes the first one, from a delivery; the others are its copies.
 * `app` is the name of a server and its settings.
 */
export async function fillStore({ start, load }, { store, count, app: [name, settings] }) {
  const app = await start(name, settings)
  const body = JSON.stringify(notice('create'))
  await load.post({ port: app.ready.port, path: `/x/${SECRET}`, body, count: 1, connections: 1 })
  await until('the first subscription is read', () => app.ask('isEntitled', businessOf(0)))
  await app.ask('settled')
  await app.stop()
  const seeding = await start('seed', { store, count })
  await seeding.ask('seed')
  await seeding.stop()
}
