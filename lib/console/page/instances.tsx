import type { HealthReply } from '../shapes.js'
import { Ago, Badge } from './parts.js'

/** The schema version, and the instances that use the database. */
export function Instances({ deployment }: { deployment: HealthReply['deployment'] }) {
  return (
    <section class="card" aria-labelledby="instances">
      <h2 id="instances">Instances</h2>
      {deployment ? <Listed {...deployment} /> : <p class="empty">The database does not answer.</p>}
    </section>
  )
}

function Listed({ schemaVersion, instances }: NonNullable<HealthReply['deployment']>) {
  const versions = new Set(instances.map(({ version }) => version))
  return (
    <>
      <dl class="numbers">
        <div>
          <dt>Schema version</dt>
          <dd>{schemaVersion}</dd>
        </div>
      </dl>
      <table class="instances">
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">Work</th>
            <th scope="col">Started</th>
            <th scope="col">Last seen</th>
          </tr>
        </thead>
        <tbody>
          {instances.map(({ id, version, hasWorker, startedAt, seenAt, isThis }) => (
            <tr key={id}>
              <td>
                {version} {isThis && <Badge tone="plain">this one</Badge>}
              </td>
              <td>{hasWorker ? 'reads and handles' : 'only receives'}</td>
              <td>
                <Ago at={startedAt} />
              </td>
              <td>
                <Ago at={seenAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {versions.size > 1 && (
        <p class="note">
          The instances have different versions: a rolling deployment, or an instance that was not updated.
        </p>
      )}
      <p class="hint">
        Each instance reports once a minute. One that was closed disappears at once, one that was killed after
        three minutes.
      </p>
    </>
  )
}
