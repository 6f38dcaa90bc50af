import type { ComponentChildren } from 'preact'
import { useContext, useEffect, useId, useRef } from 'preact/hooks'
import { SessionContext, SignedOutContext } from './session.js'

export function Button(props: {
  children: ComponentChildren
  onClick?: () => void
  isPrimary?: boolean
  isDanger?: boolean
  isBusy?: boolean
  type?: 'button' | 'submit'
  disabled?: boolean
  label?: string
}) {
  const { children, onClick, isPrimary, isDanger, isBusy, type = 'button', disabled, label } = props
  return (
    <button
      type={type}
      class={[isPrimary && 'primary', isDanger && 'danger'].filter(Boolean).join(' ')}
      onClick={isBusy ? undefined : onClick}
      aria-busy={isBusy ? 'true' : undefined}
      aria-label={label}
      disabled={disabled}
    >
      {children}
    </button>
  )
}

export function Field(props: {
  label: string
  value: string
  onInput: (value: string) => void
  type?: 'text' | 'datetime-local'
  hint?: string
  isRequired?: boolean
  hasFocus?: boolean
}) {
  const { label, value, onInput, type = 'text', hint, isRequired, hasFocus } = props
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (hasFocus) input.current?.focus()
  }, [hasFocus])
  const common = {
    ref: input,
    id,
    value,
    onInput: (event: { currentTarget: HTMLInputElement }) => onInput(event.currentTarget.value),
    required: isRequired,
    autocomplete: 'off',
    spellcheck: false,
    'aria-describedby': hint ? `${id}-hint` : undefined,
  } as const
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {type === 'text' ? (
        <input type="text" autocapitalize="off" {...common} />
      ) : (
        <input type={type} step="1" {...common} />
      )}
      {hint && (
        <p id={`${id}-hint`} class="hint">
          {hint}
        </p>
      )}
    </div>
  )
}

/** A form that is not sent while its action is under way. */
export function Form(props: {
  isBusy: boolean
  onSubmit: () => void
  class?: string
  children: ComponentChildren
}) {
  const { isBusy, onSubmit, class: className, children } = props
  return (
    <form
      class={className}
      onSubmit={(event) => {
        event.preventDefault()
        if (!isBusy) onSubmit()
      }}
    >
      {children}
    </form>
  )
}

/** An error, which screen readers announce at once. */
export function Trouble({ error, children }: { error: string | undefined; children?: ComponentChildren }) {
  return (
    <div role="alert">
      {error && (
        <p class="trouble">
          {error} {children}
        </p>
      )}
    </div>
  )
}

/** Stands on each chapter and in each dialog while the session is lost: an open dialog makes the rest of the page inert. */
export function SignedOut() {
  const signInUrl = useContext(SessionContext)?.signInUrl
  if (!useContext(SignedOutContext)) return null
  return (
    <Trouble error="You are signed out. Sign in again in another tab, then go on here: what you have typed stays.">
      {signInUrl && (
        <a href={signInUrl} target="_blank" rel="noreferrer">
          Sign in
        </a>
      )}
    </Trouble>
  )
}

/** Takes the place of what has not been read so far. */
export function Loading() {
  return (
    <p class="empty" role="status">
      Loading…
    </p>
  )
}

export function Badge({
  tone,
  children,
}: {
  tone: 'yes' | 'no' | 'wait' | 'plain'
  children: ComponentChildren
}) {
  return (
    <span class="badge" data-tone={tone}>
      {children}
    </span>
  )
}

/** The age of a time. The title shows the time itself. */
export function Ago({ at }: { at: string | null }) {
  if (at === null) return <>never</>
  const date = new Date(at)
  return (
    <time dateTime={at} title={date.toLocaleString()}>
      {ageOf(Date.now() - date.getTime())}
    </time>
  )
}

export function When({ at }: { at: string }) {
  const date = new Date(at)
  const isToday = date.toDateString() === new Date().toDateString()
  return (
    <time dateTime={at} title={date.toLocaleString()}>
      {isToday
        ? date.toLocaleTimeString()
        : date.toLocaleString([], { dateStyle: 'short', timeStyle: 'medium' })}
    </time>
  )
}

/** `just now`, `12 s ago`, `3 min ago`, or `in 5 min`. A clock may differ by some seconds, so those count as now. */
export function ageOf(ms: number): string {
  if (ms < -60_000) return `in ${ageOf(-ms).replace(' ago', '')}`
  if (ms < JUST_NOW_MS) return 'just now'
  const [unit, size] = UNITS.find(([, least]) => ms >= 2 * least) ?? ['s', 1_000]
  return `${Math.floor(ms / size)} ${unit} ago`
}
const JUST_NOW_MS = 3_000
const UNITS: readonly [string, number][] = [
  ['days', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
]

export function triesOf(attempts: number): string {
  return attempts === 1 ? '1 try' : `${attempts} tries`
}

/** A dialog. Escape closes it, and the focus returns to its previous element. */
export function Box(props: { title: string; onClose: () => void; children: ComponentChildren }) {
  const { title, onClose, children } = props
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    dialog.current?.showModal()
    return () => (before as HTMLElement | null)?.focus?.()
  }, [])
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <SignedOut />
      {children}
    </dialog>
  )
}

/** Facts with their names. */
export function Facts({
  look,
  of,
}: {
  look: 'facts' | 'numbers' | 'record'
  of: readonly (readonly [name: string, fact: ComponentChildren])[]
}) {
  return (
    <dl class={look}>
      {of.map(([name, fact]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{fact}</dd>
        </div>
      ))}
    </dl>
  )
}

export function Uid({ children }: { children: string }) {
  return <code class="uid">{children}</code>
}

export function Json({ value }: { value: unknown }) {
  return <Lines label="Content" text={JSON.stringify(value, undefined, 2)} />
}

/** A text of many lines, in a box that scrolls. */
export function Lines({ label, text }: { label: string; text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <section class="json" tabIndex={0} aria-label={label}>
      <pre>{text}</pre>
    </section>
  )
}
