import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Replies } from '../protocol/shapes.js'
import { Attention } from './attention/attention.js'
import { Business } from './business/business.js'
import { read } from './calls.js'
import { Health } from './health/health.js'
import { HealthContext, useWatchedHealth, type Watched } from './health/watch.js'
import { placeOf, useLoad, usePlace } from './hooks.js'
import { Live } from './lists/live.js'
import { Badge, Loading, SignedOut, Trouble } from './parts.js'
import { Privacy } from './privacy.js'
import { SessionContext, SignedOutContext } from './session.js'

const CHAPTERS = [
  { name: 'business', title: 'Business', View: Business, isForOperators: false },
  { name: 'attention', title: 'Needs attention', View: Attention, isForOperators: false },
  { name: 'live', title: 'Live', View: Live, isForOperators: false },
  { name: 'health', title: 'Health', View: Health, isForOperators: false },
  { name: 'privacy', title: 'Privacy', View: Privacy, isForOperators: true },
] as const

export function App() {
  const { data, error, reload } = useLoad(() => read('session'), [])
  /** The last one that was read: a lost session must not remove what the person has typed. */
  const session = useRef<Replies['session'] | undefined>(undefined)
  session.current = data ?? session.current
  const [isSignedOut, setSignedOut] = useState(false)
  useEffect(() => {
    const out = () => setSignedOut(true)
    const back = () => setSignedOut(false)
    addEventListener('signedout', out)
    addEventListener('signedin', back)
    return () => {
      removeEventListener('signedout', out)
      removeEventListener('signedin', back)
    }
  }, [])
  const wasSignedOut = useRef(false)
  useEffect(() => {
    // Somebody else may have signed in.
    if (wasSignedOut.current && !isSignedOut) reload()
    wasSignedOut.current = isSignedOut
  }, [isSignedOut])

  if (session.current)
    return (
      <SessionContext.Provider value={session.current}>
        <SignedOutContext.Provider value={isSignedOut}>
          <Chapters session={session.current} />
        </SignedOutContext.Provider>
      </SessionContext.Provider>
    )
  if (isSignedOut)
    return (
      <Alone title="You are signed out">
        <Trouble error="Sign in again, then load this page again." />
      </Alone>
    )
  if (error)
    return (
      <Alone title="The console does not load">
        <Trouble error={error} />
      </Alone>
    )
  return (
    <Alone title="One moment">
      <Loading />
    </Alone>
  )
}

function Chapters({ session }: { session: Replies['session'] }) {
  const [named = '', ...rest] = usePlace()
  const chapters = CHAPTERS.filter(
    ({ isForOperators }) => !isForOperators || session.person.role === 'operator',
  )
  const health = useWatchedHealth()
  const chapter = chapters.find(({ name }) => name === named) ?? CHAPTERS[0]
  const heading = useRef<HTMLHeadingElement>(null)
  const isFirst = useRef(true)
  const { name, title, View } = chapter
  /** On the chapter of a business. */
  const [business_uid] = name === 'business' ? rest : []
  useEffect(() => {
    document.title = [business_uid, title, 'Console'].filter(Boolean).join(' · ')
  }, [title, business_uid])
  useEffect(() => {
    if (!isFirst.current) heading.current?.focus()
    isFirst.current = false
  }, [name])

  return (
    <HealthContext.Provider value={health}>
      <header class="top">
        <p class="brand">Console</p>
        <nav aria-label="Chapters">
          <ul>
            {chapters.map((each) => (
              <li key={each.name}>
                <a href={placeOf(each.name)} aria-current={each.name === name ? 'page' : undefined}>
                  {each.title}
                </a>
                {each.name === 'attention' && <FailedCount {...health} />}
              </li>
            ))}
          </ul>
        </nav>
        <p class="person">
          {session.person.name} <span>({session.person.role})</span>
        </p>
      </header>
      <Banner {...health} />
      <main>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <SignedOut />
        <View rest={rest} />
      </main>
    </HealthContext.Provider>
  )
}

/** The number of failed entries, beside the chapter that has them. */
function FailedCount({ data }: Watched) {
  if (!data?.failed || data.failed === '0') return null
  return (
    <Badge tone="no">
      {data.failed}
      <span class="unseen"> failed</span>
    </Badge>
  )
}

const DOWN = {
  database:
    'The database of the app cannot be used at the moment. Answers may be missing, and actions may fail.',
  platform:
    'The platform cannot be read at the moment. Each business keeps its last answer until that is too old, and the app reads again by itself.',
} as const

/** Stands on every chapter while the database or the platform is down. */
function Banner({ data }: Watched) {
  return (
    <div role="status">
      {data?.down && (
        <p class="banner">
          {DOWN[data.down]} <a href={placeOf('health')}>Open Health</a>
        </p>
      )}
    </div>
  )
}

/** The page before there is a session, or without one. */
function Alone({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <main>
      <h1>{title}</h1>
      {children}
    </main>
  )
}
