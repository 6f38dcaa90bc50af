import { ReflectionKind } from 'typedoc'

/** Interfaces whose methods an app calls. This package calls the methods of all others. */
const CALLED = ['Marketplace']
/** Interfaces for tests: one example shows how their methods are used together. */
const SHOWN_WHOLE = ['Simulator', 'Faults']

/**
 * The functions and classes that an app imports, the methods that it calls, and the options that it gives, if they have
 * no example.
 */
export function withoutExample(project) {
  const exported = project.children.flatMap((module) => module.children ?? [])
  const called = [
    ...exported.filter((each) => each.kindOf([ReflectionKind.Function, ReflectionKind.Class])),
    ...exported
      .filter((each) => each.kindOf(ReflectionKind.Interface) && CALLED.includes(each.name))
      .flatMap((each) => each.children ?? [])
      .filter((member) => member.kindOf(ReflectionKind.Method)),
    ...exported
      .filter((each) => each.kindOf(ReflectionKind.Interface))
      .filter(({ name }) => name.endsWith('Options') || SHOWN_WHOLE.includes(name)),
  ]
  return called.filter((each) => !hasExample(each)).map((each) => each.getFullName())
}

/** One signature of a function with an example is enough. */
function hasExample(reflection) {
  const comments = [reflection, ...(reflection.signatures ?? [])].map(({ comment }) => comment)
  return comments.some((comment) => comment?.getTag('@example'))
}

/** The exports and their methods without a docstring. */
export function withoutDocstring(project) {
  const exported = project.children.flatMap((module) => module.children ?? [])
  const members = exported
    .filter((each) => each.kindOf([ReflectionKind.Interface, ReflectionKind.Class]))
    .flatMap((each) => each.children ?? [])
    .filter(
      (member) => member.kindOf([ReflectionKind.Method, ReflectionKind.Accessor]) && !member.inheritedFrom,
    )
  return [...exported, ...members]
    .filter((each) => !each.kindOf(ReflectionKind.Reference) && !hasDocstring(each))
    .map((each) => each.getFullName())
}

function hasDocstring(reflection) {
  const signatures = [...(reflection.signatures ?? []), reflection.getSignature]
  return [reflection, ...signatures].some((each) => each?.hasComment())
}
