import { serve } from './serve.mjs'

/** The most that Node itself gives: no framework, the body parsed, nothing kept. */
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
