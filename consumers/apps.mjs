/**
 * Apps that install the package, each with its own framework. `page` and `section` name the heading whose code is tested:
 * its blocks that begin with the name of a file become files, the other one becomes `app.ts`. `options.ts`,
 * `marketplace.ts` and the names in `.env` come from docs/quickstart.md for each of them, `paid.ts` from docs/recipes.md.
 *
 * `edits` replace a text of the program by another. They only add what the pages leave to the app: the sign-in at
 * `/sign-in/<business>`, and further routes.
 */
const EXPRESS = {
  page: 'docs/quickstart.md',
  section: 'In your app',
  edits: [
    [
      '// Your sign-in',
      `app.use(session({ secret: 'not-a-real-secret', resave: false, saveUninitialized: false }))
app.get('/sign-in/:business', (req, res) => {
  req.session.business_uid = req.params.business
  res.send('signed in')
})
// Your sign-in`,
    ],
    ["import express from 'express'", "import express from 'express'\nimport session from 'express-session'"],
    // Further routes as docs/gate.md shows them: a router, and a folder.
    [
      "app.get('/livez'",
      `const paidRoutes = express.Router()
paidRoutes.use(paid)
paidRoutes.get('/forecast', (_req, res) => void res.json({ visitors: 57 }))
app.use('/paid', paidRoutes)
app.use('/downloads', paid, express.static('downloads'))
app.get('/livez'`,
    ],
  ],
  files: { 'downloads/report.txt': '42 visitors' },
  pages: ['/paid/forecast', '/downloads/report.txt'],
}

export const APPS = {
  'Express 4': { ...EXPRESS, packages: { express: '^4.18.0', 'express-session': '^1.18.0' } },
  'Express 5': { ...EXPRESS, packages: { express: '^5.0.0', 'express-session': '^1.18.0' } },
  NestJS: {
    packages: {
      ...{ '@nestjs/common': '^12.0.0', '@nestjs/core': '^12.0.0', '@nestjs/platform-express': '^12.0.0' },
      ...{ 'reflect-metadata': '^0.2.2', rxjs: '^7.8.0', express: '^5.0.0', 'express-session': '^1.18.0' },
    },
    section: 'NestJS',
    edits: [
      ["import 'reflect-metadata'", "import 'reflect-metadata'\nimport session from 'express-session'"],
      [
        'endOnSigterm(await nest.listen(',
        `nest.use(session({ secret: 'not-a-real-secret', resave: false, saveUninitialized: false }))
nest.use('/sign-in/:business', (req, res, next) => {
  if (req.path !== '/') return next()
  req.session.business_uid = req.params.business
  res.send('signed in')
})
endOnSigterm(await nest.listen(`,
      ],
    ],
  },
  Fastify: {
    packages: {
      fastify: '^5.0.0',
      '@fastify/cookie': '^11.0.0',
      '@fastify/session': '^11.0.0',
      express: '^5.0.0',
    },
    section: 'Fastify',
    edits: [
      [
        "import Fastify from 'fastify'",
        "import fastifyCookie from '@fastify/cookie'\nimport fastifySession from '@fastify/session'\nimport Fastify from 'fastify'",
      ],
      [
        'server.register(async (paid)',
        `server.register(fastifyCookie)
server.register(fastifySession, { secret: process.env.SESSION_SECRET, saveUninitialized: false, cookie: { secure: 'auto' } })
server.get('/sign-in/:business', async (request) => {
  request.session.business_uid = request.params.business
  return 'signed in'
})
server.register(async (paid)`,
      ],
    ],
  },
  Koa: {
    packages: { koa: '^3.0.0', '@koa/router': '^14.0.0', 'koa-session': '^7.0.0', express: '^5.0.0' },
    section: 'Koa',
    edits: [
      ["import Koa from 'koa'", "import Koa from 'koa'\nimport session from 'koa-session'"],
      [
        'const koa = new Koa()',
        'const koa = new Koa()\nkoa.keys = [process.env.SESSION_SECRET]\nkoa.use(session(koa))',
      ],
      [
        'koa.use(router.routes())',
        `router.get('/sign-in/:business', (ctx) => {
  ctx.session.business_uid = ctx.params.business
  ctx.body = 'signed in'
})
koa.use(router.routes())`,
      ],
    ],
  },
  Next: {
    packages: {
      ...{ next: '^16.0.0', react: '^19.0.0', 'react-dom': '^19.0.0', express: '^5.0.0' },
      ...{ typescript: '^5.9.0', '@types/react': '^19.0.0', '@types/node': '^22.0.0' },
    },
    section: 'Next',
    files: {
      'app/layout.tsx':
        'export default ({ children }: { children: React.ReactNode }) => <html><body>{children}</body></html>',
      'app/sign-in/[business]/route.ts': `
export async function GET(_request: Request, { params }: { params: Promise<{ business: string }> }) {
  return new Response('signed in', { headers: { 'set-cookie': 'session=' + (await params).business + '; Path=/' } })
}`,
      'app/api/reports/route.ts': `
import { paidStatus } from '../../../lib/paid'
export async function GET() {
  const status = await paidStatus()
  const headers = { 'Cache-Control': 'private, no-store' }
  return status === 200 ? Response.json({ visitors: 42 }, { headers }) : new Response(null, { status, headers })
}`,
      // The sign-in of the test only: a real session has an identifier that nobody can guess.
      'lib/session.ts': `
import { cookies } from 'next/headers'
export const businessOfSession = async () => (await cookies()).get('session')?.value`,
    },
    tsconfig: { allowImportingTsExtensions: true },
    entry: 'server.ts',
    builds: ['next', 'build'],
    // In development each request takes long. The spellings are tried in production.
    environments: [{ NODE_ENV: 'production' }, { NODE_ENV: 'development', FEW_SPELLINGS: '1' }],
    paid: '/api/reports',
    pages: ['/reports'],
  },
  'serverless-http': {
    ...EXPRESS,
    packages: { 'serverless-http': '^4.0.0', express: '^5.0.0', 'express-session': '^1.18.0' },
    edits: [
      ...EXPRESS.edits,
      [
        'endOnSigterm(app.listen(Number(PORT)))',
        `import { createServer } from 'node:http'
import serverless from 'serverless-http'
const handler = serverless(app)
const front = createServer(async (req, res) => {
  const chunks = []
  for await (const chunk of req) chunks.push(chunk)
  // The request as a gateway passes it to a function.
  const [path, query] = req.url.split('?')
  const reply = await handler(
    {
      httpMethod: req.method,
      path,
      queryStringParameters: Object.fromEntries(new URLSearchParams(query)),
      headers: req.headers,
      body: chunks.length > 0 ? Buffer.concat(chunks).toString('base64') : null,
      isBase64Encoded: true,
      requestContext: {},
    },
    {},
  )
  const { statusCode, headers, multiValueHeaders, body } = reply
  res.writeHead(statusCode, { ...headers, ...multiValueHeaders }).end(body)
})
endOnSigterm(front.listen(Number(PORT)))`,
      ],
    ],
  },
}
