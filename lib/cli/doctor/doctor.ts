import type { Command } from 'commander'
import type { Marketplace, ProblemCode } from '../../index.js'
import { examples, trimmed, webAddress } from '../terminal/command-options.js'
import type { Act, Context } from '../terminal/context.js'
import { DONE, FIXES, NO, stopFor } from '../terminal/exit-codes.js'
import { checkDelivery, checkRegistrations } from './delivery.js'
import { checkHandlers, checkItems, lastInstalled } from './journal.js'
import { checkHosts, checkRead, checkToken, createSkewWatch } from './platform.js'
import { createReport, ok, skipped, warning } from './report.js'

interface DoctorOptions {
  business?: string
  subscription?: string
  publicUrl?: string
}

type Named = { subscription_uid: string | undefined; business_uid: string | undefined }

export function addDoctor(program: Command, act: Act) {
  program
    .command('doctor')
    .summary('find problems and how to fix them')
    .description(
      'Check the settings, the database and its grants, the purchases so far, the platform, the clocks, a read, and with --public-url a ' +
        'delivery to the public address. The journal records that delivery as unrecognised. Exit code 1: a check failed.',
    )
    .option('--business <uid>', 'a business that has the app; default: one from the database', trimmed)
    .option('--subscription <uid>', 'a subscription of the business; default: one from the database', trimmed)
    .option('--public-url <url>', 'the public address of the router, without the secret', webAddress)
    .addHelpText('after', examples('doctor', 'doctor --public-url https://app.example/hooks'))
    .action(
      act(async (context, given: DoctorOptions) => {
        const { out } = context
        const report = createReport(out)
        await examine(context, given, report)
        if (out.isJson) out.result({ ok: !report.hasFailed(), checks: report.checks }, () => '')
        return report.hasFailed() ? NO : DONE
      }),
    )
}

async function examine(context: Context, given: DoctorOptions, report: ReturnType<typeof createReport>) {
  const settings = await report.run('settings', async () => {
    await context.create({ store: 'sqlite::memory:', worker: false })
    const { app } = await context.options()
    if ([app.purchasableUid ?? []].flat().length > 0) return ok('complete')
    return warning(
      "app.purchasableUid is not set, so every subscription in an event counts as the app's own",
      'Set MARKETPLACE_PURCHASABLE_UID to the item of the app.',
    )
  })
  if (!settings) {
    for (const check of ['host', 'store', ...OF_DATABASE, ...OF_PLATFORM, 'delivery'])
      report.add(check, skipped('the settings are not valid'))
    return
  }

  const { app, platform } = await context.options()
  const isThere = await report.run('host', () => checkHosts(platform))
  let marketplace: Marketplace | undefined
  async function checkStore() {
    const opened = await context.open()
    marketplace = opened
    const health = await opened.health()
    const problems = health.problems.filter(({ code }) => !WITH_CHECKS.includes(code))
    if (problems.length === 0)
      return ok('the database opens, this user may use its tables, and no work is delayed')
    return warning(
      problems.map(({ message }) => message).join('; '),
      problems.map(({ next }) => next).join(' '),
    )
  }
  await report.run('store', checkStore, isThere ? FIXES : { ...FIXES, store_of_another_app: FIX_OF_HOST })
  const open = marketplace as Marketplace | undefined
  if (open) {
    await report.run('events', () => checkRegistrations(open))
    await report.run('items', () => checkItems(open, [app.purchasableUid ?? []].flat()))
    await report.run('handlers', () => checkHandlers(open))
  } else for (const check of OF_DATABASE) report.add(check, skipped('the database could not be opened'))

  if (isThere) await examinePlatform(context, await named(given, open), report)
  else
    for (const check of OF_PLATFORM) report.add(check, skipped('an address of the platform does not answer'))

  const { publicUrl } = given
  if (publicUrl === undefined) {
    report.add('delivery', skipped('no public address was given', 'Give --public-url <url>.'))
    return
  }
  const sender = await context.create({ store: 'sqlite::memory:', worker: false })
  const { targetUrl } = sender.webhooks
  await report.run('delivery', () => checkDelivery({ publicUrl, targetUrl, marketplace: open }))
}

/** The checks that need the database, and those that need the platform. */
const OF_DATABASE = ['events', 'items', 'handlers']
const OF_PLATFORM = ['token', 'clock', 'read']
/** The problems that have a check of their own. */
const WITH_CHECKS: readonly ProblemCode[] = ['other_items_only', 'entries_dead', 'entries_retrying']

const FIX_OF_HOST =
  'Correct the address of the platform first: with another MARKETPLACE_BASE_URL the database seems to be that of another app.'

async function examinePlatform(
  context: Context,
  { subscription_uid, business_uid }: Named,
  report: ReturnType<typeof createReport>,
) {
  const { platform } = await context.options()
  const watch = createSkewWatch(platform.fetch)
  const watched = { ...platform, fetch: watch.fetch }
  const unnamed = skipped(
    'the database has no business to test with',
    'Give --business <uid> of a business that has the app.',
  )

  let hasToken = false
  if (business_uid === undefined) report.add('token', unnamed)
  else
    hasToken = await report.run('token', async () => {
      const caller = await context.create({ store: 'sqlite::memory:', worker: false, platform: watched })
      return checkToken(caller, business_uid)
    })
  report.add('clock', watch.finding())
  if (business_uid === undefined || subscription_uid === undefined)
    report.add(
      'read',
      skipped('the database has no subscription to test with', 'Give --business and --subscription.'),
    )
  else if (!hasToken) report.add('read', skipped('the check of the token failed'))
  else
    await report.run('read', () =>
      checkRead((replaced) => context.create({ ...replaced, platform: watched }), {
        subscription_uid,
        business_uid,
      }),
    )
}

/**
 * The subscription and the business to test with: as given, else one that bought the app, else one of the last install:
 * one that a read has shown, because whoever can send deliveries can make up others.
 */
async function named(given: DoctorOptions, marketplace: Marketplace | undefined): Promise<Named> {
  const { business, subscription } = given
  if (subscription !== undefined || !marketplace)
    return { subscription_uid: subscription, business_uid: business }
  const of = (businessUid: string | undefined) => (businessUid === undefined ? {} : { businessUid })
  try {
    const [bought] = await marketplace.subscriptions.list({ ...of(business), reason: 'purchased', limit: 1 })
    if (bought)
      return { subscription_uid: bought.subscription_uid, business_uid: business ?? bought.business_uid }
    const installed = business ?? (await lastInstalled(marketplace))
    const stored = await marketplace.subscriptions.list({ ...of(installed), limit: LOOKED_AT })
    const shown = stored.filter(({ gone }) => gone === null)
    const found = shown.find(({ readAt }) => readAt !== null) ?? shown[0]
    return { subscription_uid: found?.subscription_uid, business_uid: installed ?? found?.business_uid }
  } catch (error) {
    throw stopFor(error)
  }
}

const LOOKED_AT = 1_000
