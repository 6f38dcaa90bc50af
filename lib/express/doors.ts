import { createListener, type ListenerOptions } from './handler.js'
import { createReceiver } from './receiver.js'
import type { ReceiverOptions } from './take-delivery.js'

/** The two entrances for deliveries: middleware inside a framework, and a listener in front of it. */
export function createDoors(
  options: ReceiverOptions & {
    /** Called with the error that `otherwise` threw or rejected with. */
    onOtherwiseError?: (error: unknown) => void
  },
) {
  const { onOtherwiseError, ...receiver } = options
  return {
    router: createReceiver(receiver),
    listener: (where: ListenerOptions) => createListener({ ...receiver, onError: onOtherwiseError }, where),
  }
}
