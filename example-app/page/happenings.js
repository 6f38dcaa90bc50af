import { clockTime } from './clock-time.js'

/** The list of what happened to the chosen business and to everybody, newest first. */
const WORDS = {
  platform: 'Platform',
  delivery: 'Delivery',
  token: 'Token',
  read: 'Read',
  change: 'Change',
  event: 'App',
  decision: 'Decision',
  stage: 'Demo',
}
const SHOWN = 150

export function createHappenings(list, empty) {
  let all = []
  let chosen

  const isShown = ({ business_uid }) => business_uid === undefined || business_uid === chosen

  function item({ at, lane, text, tone, id }) {
    const row = document.createElement('li')
    Object.assign(row.dataset, { lane, tone, id })
    const time = Object.assign(document.createElement('time'), {
      textContent: clockTime(at),
      dateTime: new Date(at).toISOString(),
    })
    const what = Object.assign(document.createElement('span'), {
      className: 'lane',
      textContent: WORDS[lane],
    })
    const words = Object.assign(document.createElement('span'), { className: 'words', textContent: text })
    row.append(time, what, words)
    return row
  }

  function showEmpty() {
    empty.hidden = list.childElementCount > 0
  }

  return {
    add(happening) {
      // After a reconnect the server tells everything once more; after its restart the count begins anew.
      const last = all.at(-1)
      if (last && happening.id <= last.id && happening.at <= last.at) return
      if (last && happening.id < last.id) {
        all = []
        list.replaceChildren()
      }
      all.push(happening)
      if (!isShown(happening)) return
      list.prepend(item(happening))
      while (list.childElementCount > SHOWN) list.lastElementChild.remove()
      showEmpty()
    },
    choose(uid) {
      if (uid === chosen) return
      chosen = uid
      const newest = all.filter(isShown).slice(-SHOWN)
      list.replaceChildren(...newest.reverse().map(item))
      showEmpty()
    },
  }
}
