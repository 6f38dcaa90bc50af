/** An element with its class, its text, and what stands in it. */
export function make(tag, className = '', ...content) {
  const element = document.createElement(tag)
  if (className) element.className = className
  element.append(...content)
  return element
}

/** Untouched when equal: a status line is read out only for news, and a selection stays. */
export function setText(id, text) {
  const element = document.getElementById(id)
  if (element.textContent !== text) element.textContent = text
}
