/**
 * Apps that install the package, each with its own framework. `recipe` names the heading in docs/recipes.md whose code
 * is tested unchanged; `code` is the app itself. Both can use `marketplace`; `url` is set to the app's address.
 */
const GATE = `
const gate = marketplace.requireEntitlement({ businessUid: (req) => req.get('x-business') })
const app = express()
app.use('/webhooks/marketplace', marketplace.router)
app.use('/reports', gate)
app.get('/reports', (_req, res) => void res.json({ visitors: 42 }))`
const LISTEN = `
const url = await new Promise((resolve) => {
  const server = app.listen(0, () => resolve('http://127.0.0.1:' + server.address().port))
})`

export const APPS = {
  'Express 4': {
    packages: { express: '^4.18.0' },
    code: `import express from 'express'\n${GATE}\n${LISTEN}`,
  },
  'Express 5': { packages: { express: '^5.0.0' }, code: `import express from 'express'\n${GATE}\n${LISTEN}` },
  NestJS: {
    packages: {
      ...{ '@nestjs/common': '^12.0.0', '@nestjs/core': '^12.0.0', '@nestjs/platform-express': '^12.0.0' },
      ...{ 'reflect-metadata': '^0.2.2', rxjs: '^7.8.0', express: '^5.0.0' },
    },
    // The recipe takes the business from the session of the app.
    before: `import 'reflect-metadata'
import { IncomingMessage } from 'node:http'
Object.defineProperty(IncomingMessage.prototype, 'user', {
  get() {
    return this.headers['x-business'] && { business_uid: this.headers['x-business'] }
  },
})`,
    recipe: 'NestJS',
    code: 'const url = await nest.getUrl()',
  },
  Fastify: {
    packages: { fastify: '^5.0.0', express: '^5.0.0' },
    recipe: 'Fastify',
    code: "const url = await server.listen({ port: 0, host: '127.0.0.1' })",
  },
  'serverless-http': {
    packages: { 'serverless-http': '^4.0.0', express: '^5.0.0' },
    code: `import { createServer } from 'node:http'
import express from 'express'
import serverless from 'serverless-http'
${GATE}
const handler = serverless(app)
const front = createServer(async (req, res) => {
  const chunks = []
  for await (const chunk of req) chunks.push(chunk)
  // The request as a gateway passes it to a function.
  const { statusCode, headers, body } = await handler(
    {
      httpMethod: req.method,
      path: req.url,
      headers: req.headers,
      body: chunks.length > 0 ? Buffer.concat(chunks).toString('base64') : null,
      isBase64Encoded: true,
      requestContext: {},
    },
    {},
  )
  res.writeHead(statusCode, headers).end(body)
})
const url = await new Promise((resolve) => {
  front.listen(0, () => resolve('http://127.0.0.1:' + front.address().port))
})`,
  },
}
