/** An element with its class, its text and its content. */
export function make(tag, className = '', ...content) {
  const element = document.createElement(tag)
  if (className) element.className = className
  element.append(...content)
  return element
}

/**
 * An equal text is left unchanged: a screen reader announces a status line only when it changes, and a selection stays.
 */
export function setText(id, text) {
  const element = document.getElementById(id)
  if (element.textContent !== text) element.textContent = text
}
