/** The events of the chosen business and those that concern all, newest first: a group for each action of a person. */
import { clockTime } from './clock-time.js'
import { make } from './make.js'

const WORDS = {
  platform: 'Platform',
  delivery: 'Delivery',
  token: 'Token',
  read: 'Read',
  change: 'Change',
  event: 'App',
  decision: 'Decision',
  visit: 'Visit',
  demo: 'Demo',
}
const MOST_GROUPS = 60

export function createLog(list) {
  let all = []
  let chosen

  const isShown = ({ business_uid }) => business_uid === undefined || business_uid === chosen

  function add(happening) {
    if (!isShown(happening)) return
    let group = list.querySelector(`[data-cause="${happening.cause}"]`)
    if (!group) {
      group = groupOf(happening, all)
      list.prepend(group)
      while (list.childElementCount > MOST_GROUPS) list.lastElementChild.remove()
    }
    if (group.dataset.first === String(happening.id)) return
    group.querySelector('ol').append(row(happening))
    if (happening.kind === 'decision') showDuration(group, happening.at)
  }

  function show() {
    list.replaceChildren()
    for (const happening of all) add(happening)
  }

  return {
    /** The newest event that the list shows. */
    newest: () => all.findLast(isShown),
    /** Replaces the list by the events so far. */
    past(happenings) {
      all = happenings
      show()
    },
    add(happening) {
      all.push(happening)
      add(happening)
    },
    choose(uid) {
      if (uid === chosen) return
      chosen = uid
      show()
    },
  }
}

/** A group begins with its cause, or with its first shown event if the cause concerns another business. */
function groupOf({ id, cause, at, text, tone }, all) {
  const isKept = all.some((each) => each.id === cause)
  const group = make('li', 'cause')
  Object.assign(group.dataset, { cause, tone: isKept ? tone : 'plain', at, first: isKept ? id : '' })
  group.append(
    make('p', 'at', time(at), make('span', 'took')),
    make('p', 'title', isKept ? text : 'Earlier'),
    make('ol'),
  )
  return group
}

function row({ kind, text, tone, id }) {
  const item = make('li', '', make('span', 'kind', WORDS[kind]), make('span', 'words', text))
  Object.assign(item.dataset, { kind, tone, id })
  return item
}

/** Shows the time from the action to the newest answer that it caused. */
function showDuration(group, at) {
  const ms = at - Number(group.dataset.at)
  group.querySelector('.took').textContent =
    ms < 1_000 ? `answer after ${ms} ms` : `answer after ${(ms / 1_000).toFixed(1)} s`
}

function time(at) {
  return Object.assign(make('time', '', clockTime(at)), { dateTime: new Date(at).toISOString() })
}
