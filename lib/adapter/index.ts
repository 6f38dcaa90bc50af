export type { Clock } from '../clock.js'
export { MarketplaceError } from '../errors.js'
export type { SubscriptionRecord } from '../record.js'
export * from '../store/store.js'
export type { StoreConformanceOptions } from './options.js'
export { type ConformanceCheck, storeConformance } from './store-conformance.js'
export {
  STORE_FAULT_KINDS,
  STORE_METHODS,
  type StoreFault,
  type StoreFaultHandle,
  type StoreFaultKind,
  type StoreFaults,
  type StoreMethod,
  withStoreFaults,
} from './store-faults.js'
