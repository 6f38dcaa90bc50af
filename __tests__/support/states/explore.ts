/** A machine in memory, as seen from outside. */
export interface Explored<Input extends string> {
  /** The inputs that it can get now. */
  inputs(): readonly Input[]
  give(input: Input): Promise<void>
  /** May change the machine, which is not used any more. */
  state(): Promise<string>
}

/**
 * Gives a machine every sequence of up to `depth` inputs, and returns the transitions that it made, such as
 * `new --> open`.
 */
export async function explore<Input extends string>(
  create: () => Explored<Input>,
  depth: number,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>()
  const after = async (inputs: readonly Input[]) => {
    const machine = create()
    for (const input of inputs) await machine.give(input)
    return { possible: machine.inputs(), state: await machine.state() }
  }
  const visit = async (inputs: readonly Input[], from: Awaited<ReturnType<typeof after>>) => {
    if (inputs.length === depth) return
    for (const input of from.possible) {
      const next = await after([...inputs, input])
      if (next.state !== from.state) found.add(`${from.state} --> ${next.state}`)
      await visit([...inputs, input], next)
    }
  }
  const begin = await after([])
  found.add(`[*] --> ${begin.state}`)
  await visit([], begin)
  return found
}
