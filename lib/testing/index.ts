export { fixtureOf } from '../events/fixture.js'
export type { Faults, Simulator } from './api.js'
export type { Delivery } from './deliverer.js'
export type { DeliveryStyle, FullSubscription, SentEnvelope } from './envelopes.js'
export type { Endpoint, Fault, FaultAim, FaultHandle, FaultKind, FaultPoint, Span } from './faults.js'
export { FAULT_KINDS } from './faults.js'
export type { SimulatorOptions } from './options.js'
export type { PlatformRequest } from './platform-server.js'
export {
  type ApplicationData,
  type AppSubscriptionData,
  type NoticeData,
  type SampleData,
  type SampleDelivery,
  sampleDelivery,
} from './samples.js'
export { createSimulator } from './simulator.js'
export type { MainSubscription, Purchase, SimulatedApp } from './world.js'
