import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'

export interface DoorReply {
  status: number
  text: string
}

/** Makes a request to the router without a socket. Its body arrives in pieces and may stop before its end. */
export function knock(
  router: (req: never, res: never, next: never) => void,
  options: { url: string; pieces: readonly string[]; isCutOff: boolean },
  onReply: (reply: DoorReply) => void,
): void {
  const { url, pieces, isCutOff } = options
  const req = Object.assign(new EventEmitter(), {
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
    readableDidRead: false,
    readableEnded: false,
    complete: false,
    destroyed: false,
    isPaused: () => false,
    resume() {},
  })
  const res = {
    headersSent: false,
    destroyed: false,
    statusCode: 200,
    text: '',
    setHeader: () => res,
    flushHeaders() {},
    write(text: string) {
      res.text += text
    },
    end(text = '') {
      if (res.headersSent) return
      res.headersSent = true
      onReply({ status: res.statusCode, text: res.text + text })
    },
    destroy() {
      res.destroyed = true
    },
  }
  router(
    req as unknown as IncomingMessage as never,
    res as unknown as ServerResponse as never,
    (() => {}) as never,
  )
  for (const piece of isCutOff ? pieces.slice(0, 1) : pieces) req.emit('data', Buffer.from(piece))
  if (isCutOff) {
    res.destroyed = true
  } else {
    req.complete = true
    req.readableEnded = true
    req.emit('end')
  }
  req.emit('close')
}
