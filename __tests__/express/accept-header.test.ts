import { describe, expect, it } from '@jest/globals'
import { prefersHtml } from '../../lib/express/reply-denied.js'

describe('an Accept header', () => {
  it.each([
    'text/html',
    'TEXT/HTML, application/json;q=0.9',
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'text/*;q=0.5, application/json;q=0.4',
    'text/html ; level=1 ; q=0.7, */*;q=0.1',
    'application/*;q=0, text/html;q=0.1',
    '*/*, application/json;q=0.5, application/problem+json;q=0.5',
    'application/json;q=2, application/problem+json;q=-1, text/html;q=0.1',
    'application/json;q=many, application/problem+json;q=, text/html;q=1',
  ])('prefers a page to JSON: %s', (accept) => {
    expect(prefersHtml(accept)).toBe(true)
  })

  it.each([
    undefined,
    5,
    ['text/html'],
    '',
    '*/*',
    'application/json',
    'text/html, application/json',
    'text/html;q=0.5, application/problem+json;q=0.6',
    'text/html;q=0.5, application/*;q=0.6',
    'text/html;q=0',
    'text/html;q=-0.5',
    'text/html;q=0, application/*;q=-1',
    'text/plain',
    'text/html;q=1.5',
  ])('does not prefer a page to JSON: %p', (accept) => {
    expect(prefersHtml(accept)).toBe(false)
  })

  it('prefers by the most specific range, at any position', () => {
    expect(prefersHtml('*/*;q=0.9, text/*;q=0.8, text/html;q=0.1')).toBe(false)
    expect(prefersHtml('text/*;q=0.1, text/html;q=1, */*;q=0.5')).toBe(true)
    expect(prefersHtml('*/*;q=0.5, text/*;q=0.6')).toBe(true)
  })
})
