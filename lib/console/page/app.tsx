import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Replies } from '../protocol/shapes.js'
import { Attention } from './attention/attention.js'
import { Business } from './business/business.js'
import { read } from './calls.js'
import { Health } from './health/health.js'
import { placeOf, useLoad, usePlace } from './hooks.js'
import { Live } from './lists/live.js'
import { Trouble } from './parts.js'
import { Privacy } from './privacy.js'
import { SessionContext } from './session.js'

const CHAPTERS = [
  { name: 'business', title: 'Business', View: Business, isForOperators: false },
  { name: 'attention', title: 'Needs attention', View: Attention, isForOperators: false },
  { name: 'live', title: 'Live', View: Live, isForOperators: false },
  { name: 'health', title: 'Health', View: Health, isForOperators: false },
  { name: 'privacy', title: 'Privacy', View: Privacy, isForOperators: true },
] as const

export function App() {
  const session = useLoad(() => read('session'), [])
  const [isSignedOut, setSignedOut] = useState(false)
  useEffect(() => {
    const out = () => setSignedOut(true)
    addEventListener('signedout', out)
    return () => removeEventListener('signedout', out)
  }, [])

  if (isSignedOut)
    return (
      <Alone title="You are signed out">
        <Trouble error="Sign in again, then load this page again." />
      </Alone>
    )
  if (session.error)
    return (
      <Alone title="The console does not load">
        <Trouble error={session.error} />
      </Alone>
    )
  if (!session.data)
    return (
      <Alone title="One moment">
        <p>Loading.</p>
      </Alone>
    )
  return (
    <SessionContext.Provider value={session.data}>
      <Chapters session={session.data} />
    </SessionContext.Provider>
  )
}

function Chapters({ session }: { session: Replies['session'] }) {
  const [named = '', ...rest] = usePlace()
  const chapters = CHAPTERS.filter(
    ({ isForOperators }) => !isForOperators || session.person.role === 'operator',
  )
  const chapter = chapters.find(({ name }) => name === named) ?? CHAPTERS[0]
  const heading = useRef<HTMLHeadingElement>(null)
  const isFirst = useRef(true)
  const { name, title, View } = chapter
  useEffect(() => {
    document.title = `${title} · Console`
    if (!isFirst.current) heading.current?.focus()
    isFirst.current = false
  }, [name])

  return (
    <>
      <header class="top">
        <p class="brand">Console</p>
        <nav aria-label="Chapters">
          <ul>
            {chapters.map((each) => (
              <li key={each.name}>
                <a href={placeOf(each.name)} aria-current={each.name === name ? 'page' : undefined}>
                  {each.title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <p class="person">
          {session.person.name} <span>({session.person.role})</span>
        </p>
      </header>
      <main>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <View rest={rest} />
      </main>
    </>
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
