/** The entry points of the package, by the names of their pages. */
export const ENTRY_POINTS = {
  'marketplace-webhooks': 'lib/index.ts',
  testing: 'lib/testing/index.ts',
  console: 'lib/console/index.ts',
}

/** Options of TypeDoc and its Markdown plugin. */
export const OPTIONS = {
  plugin: ['typedoc-plugin-markdown'],
  name: 'Everything that can be imported',
  // `router.mjs`.
  router: 'exports',
  readme: 'none',
  disableSources: true,
  excludeExternals: true,
  excludeInternal: true,
  githubPages: false,
  // Short pages, because they are part of the package.
  hideBreadcrumbs: true,
  hidePageHeader: true,
  useCodeBlocks: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  typeAliasPropertiesFormat: 'table',
  typeDeclarationFormat: 'table',
  propertyMembersFormat: 'table',
  tableColumnSettings: { hideDefaults: true, hideInherited: true, hideModifiers: true, hideSources: true },
  validation: { notExported: true, invalidLink: true, notDocumented: false },
  // Parts of public types that nobody needs by name.
  intentionallyNotExported: [
    ...['ROLES', 'ROWS', 'BuiltInEvents', 'Subject', 'InstallData', 'Notice'],
    ...['OnCall', 'OnRead', 'OnDelivery', 'StatusFault'],
    ...['Unsubscribe', 'WebhookRegistration', 'RegisterResult', 'Registry', 'TokenKind'],
    ...['SubscriptionVerdict', 'ItemOptions', 'PurchasableUids', 'BusinessUid', 'PurchaseUrl'],
    ...['EventDefinition', 'HealthListener', 'HistoryOptions', 'EraseSummary'],
    ...['ImportLine', 'ImportProgress', 'Action', 'ReplayFilter', 'ReplaySummary', 'Cause', 'LogFields'],
    ...['Arrivals', 'SecretReport', 'WebhookEventReport', 'AnnouncedRecord', 'PostgresClient'],
    ...['StoredFacts', 'SeenFacts', 'ReplayOptions', 'RecordedAction', 'RuleAnswerUntil'],
    // What a decision and a marketplace must have for a next step.
    ...['StepDecision', 'Asked', 'Decided', 'Facts'],
    ...['RestoreSummary', 'RestoreStep', 'EntryKind', 'EntryStatus', 'StoreCounts', 'Gone'],
    // The shapes of requests.
    ...['AppRequest', 'AppResponse', 'BodyRequest', 'Next'],
    // The types behind public names of the same spelling.
    ...['work/handling/handlers.ts:Handler', 'work/handling/handlers.ts:HandlerContext'],
  ],
}
