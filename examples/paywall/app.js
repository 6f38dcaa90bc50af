import { randomUUID } from 'node:crypto'
import express from 'express'
import { createMarketplace } from 'marketplace-webhooks'

export const PLANS = ['plan-basic', 'plan-pro']

/** The app over a platform: `{ baseUrl, authUrl }`. */
export function createApp(platform, credentials) {
  const marketplace = createMarketplace({
    app: { ...credentials, purchasableUid: PLANS },
    platform,
    deliverySecrets: 'q8Zr3mW5xK1vT7yB9nL2cD4f',
    store: 'sqlite::memory:',
  })
  const guard = (more) => [
    unstored,
    marketplace.requireEntitlement({ businessUid: businessOf, onDenied, ...more }),
  ]

  const app = express()
  app.use('/webhooks/marketplace', marketplace.router)
  // Only for this example: whoever opens this page is signed in for the business that it names.
  app.get('/sign-in', (req, res) => {
    const id = randomUUID()
    sessions.set(id, String(req.query.business))
    res.cookie('session', id, { httpOnly: true, sameSite: 'lax' }).redirect('/reports')
  })
  app.get('/reports', guard(), (_req, res) => res.send(page('Reports', 'Visitors this week: 42')))
  app.get('/forecast', guard({ purchasableUid: 'plan-pro' }), (_req, res) =>
    res.send(page('Forecast', 'Visitors next week: 57')),
  )
  app.get('/plans', unstored, (_req, res) =>
    res.send(page('Plans', 'A real app links to the platform here.')),
  )
  // The platform sends the buyer here.
  app.get('/bought', unstored, (_req, res) => res.send(CHECKING))
  app.get('/api/wait', unstored, async (req, res) => {
    const business = businessOf(req)
    if (!business) return res.sendStatus(401)
    const { entitled, known } = await marketplace.waitForEntitlement(business, { timeoutMs: 25_000 })
    res.json({ entitled, known })
  })
  return { app, marketplace }
}

/** The businesses that are signed in, by session. A real app uses the sessions of its own sign-in. */
const sessions = new Map()

/** No cache may show a paid page after the access has ended, nor a denial after the business has paid. */
function unstored(_req, res, next) {
  res.set('Cache-Control', 'private, no-store')
  next()
}

/** From the session, never from a header, a query or a body: anybody can send these. */
function businessOf(req) {
  const [, id] = /(?:^|; )session=([^;]+)/.exec(req.get('cookie') ?? '') ?? []
  return sessions.get(id)
}

function onDenied(req, res, _next, { known, reason }) {
  if (reason === 'business_missing') {
    res.status(401).send(page('Please sign in', 'This page is for businesses that use the app.'))
  } else if (!known) {
    res
      .status(503)
      .set({ 'Retry-After': '5', Refresh: `5;url=?${req.originalUrl.split('?')[1] ?? ''}` })
      .send(page('One moment', 'Your purchase is being checked. This page loads again by itself.'))
  } else if (reason === 'other_item') {
    res.status(402).send(page('Part of Pro', 'Your plan is Basic. <a href="/plans">Change to Pro</a>'))
  } else {
    res.status(402).send(page('Choose a plan', '<a href="/plans">Buy the app</a> to see this page.'))
  }
}

/** The page after a purchase, which may come before the event: it waits, and opens the app by itself. */
const CHECKING = page(
  'Checking your purchase…',
  `<span id="state" role="status">The app opens by itself.</span>
<script type="module">
  for (;;) {
    const reply = await fetch('/api/wait').catch(() => undefined)
    const { entitled, known } = reply?.ok ? await reply.json() : {}
    if (entitled) break
    if (known) state.innerHTML = 'There is no purchase yet: <a href="/plans">buy the app</a>. It opens by itself after that.'
    await new Promise((resolve) => setTimeout(resolve, known ? 0 : 5_000))
  }
  location.replace('/reports')
</script>`,
)

function page(title, text) {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<body style="font: 1rem/1.5 system-ui; max-width: 32rem; margin: 4rem auto; padding: 0 1rem">
<h1>${title}</h1>
<p>${text}</p>
</html>
`
}
