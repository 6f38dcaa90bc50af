/** What each app must show. */
export const EXPECTED = {
  delivery: 200,
  'wrong secret': 404,
  'has bought': '200 with the report, private, no-store',
  'has not bought': '402',
  'not signed in': '401',
  'not signed in, with the business in a header and the query': '401',
  'pages for who has bought': true,
  'let in by another spelling': [],
  'deliveries of the purchase': '200',
  'under way at SIGTERM': ['200 with the report', '200 with the report', '200 with the report'],
  'end of the process': 0,
}
