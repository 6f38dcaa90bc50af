import { createNodeMiddleware, Webhooks } from '@octokit/webhooks'
import express from 'express'
import { serve } from './serve.mjs'

/** A webhook middleware in wide use. It verifies a signature and calls handlers, here none, and keeps nothing. */
const app = express()
app.use(createNodeMiddleware(new Webhooks({ secret: process.argv[2] }), { path: '/x' }))

serve(app)
