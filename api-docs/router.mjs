import { ReflectionKind } from 'typedoc'
import { ModuleRouter } from 'typedoc-plugin-markdown'

/**
 * The plugin anchors the members of an export twice: first by their path on the page, then by their own name, which is
 * what the page shows. The first pass takes names away: with a method `Store.counts`, the link to a type `StoreCounts`
 * leads to `#storecounts-1`. So the first pass anchors only the exports.
 */
export class Router extends ModuleRouter {
  buildAnchors(target, page) {
    if (page.kindOf(ReflectionKind.Module) && target.parent !== page) return
    super.buildAnchors(target, page)
  }
}
