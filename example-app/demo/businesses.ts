/** The businesses of the demo. */
export const BUSINESSES = [
  { uid: 'bakery-lindt', name: 'Bakery Lindt' },
  { uid: 'yoga-studio-mitte', name: 'Yoga Studio Mitte' },
  { uid: 'cafe-morgenrot', name: 'Café Morgenrot' },
  { uid: 'radhaus-becker', name: 'Radhaus Becker' },
  { uid: 'salon-aurora', name: 'Salon Aurora' },
] as const

export function nameOf(businessUid: string): string {
  return BUSINESSES.find(({ uid }) => uid === businessUid)?.name ?? businessUid
}
