/** What each app must show. */
export const EXPECTED = {
  delivery: 200,
  'wrong secret': 404,
  'has bought': '200 with the report',
  'has not bought': '402',
  'not signed in': '401',
  'not signed in, with the business in a header and the query': '401',
  'pages for who has bought': true,
  'let in by another spelling': [],
  'deliveries of the purchase': '200',
}
