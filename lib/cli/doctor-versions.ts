import type { Marketplace } from '../index.js'
import { type Finding, ok, warning } from './doctor-report.js'

/** The schema version, and the instances that use the database, without this command. */
export async function checkVersions(marketplace: Marketplace): Promise<Finding> {
  const { schemaVersion, instances } = await marketplace.deployment()
  const others = instances.filter(({ isThis }) => !isThis)
  const schema = `schema version ${schemaVersion}`
  if (others.length === 0) return ok(`${schema}; no other instance uses the database`)
  const shown = others.map(
    ({ version, hasWorker, startedAt }) =>
      `${version} (${hasWorker ? 'reads and handles' : 'only receives'}, since ${startedAt})`,
  )
  const text = `${schema}; instances: ${shown.join(', ')}`
  if (new Set(others.map(({ version }) => version)).size === 1) return ok(text)
  return warning(
    `${text}. They have different versions`,
    'Wait until the deployment has finished; update an instance that it left out.',
  )
}
