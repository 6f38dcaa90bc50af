import { serve } from './serve.mjs'

/** The upper bound of Node itself: no framework, the body is parsed, nothing is stored. */
serve((req, res) => {
  let text = ''
  req.setEncoding('utf8')
  req.on('data', (chunk) => {
    text += chunk
  })
  req.on('end', () => {
    JSON.parse(text)
    const reply = '{"received":true}'
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': reply.length })
    res.end(reply)
  })
})
