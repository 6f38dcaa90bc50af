import { describe, expect, it } from '@jest/globals'
import { MINUTE } from '../../../lib/base/clock.js'
import { createDeliveryReplies } from '../../../lib/operations/health/delivery-replies.js'

describe('the replies to deliveries', () => {
  it('are judged by the last minute, however many were accepted before it', () => {
    let now = 0
    const replies = createDeliveryReplies({ monotonic: () => now })
    for (let i = 0; i < 15; i++) replies.note('accepted', true)
    now += MINUTE
    for (let i = 0; i < 6; i++) replies.note('verification_failed', true)
    const [problem] = replies.problems()
    expect(problem?.message).toMatch(/^6 of the last 6 deliveries got /)
  })
})
