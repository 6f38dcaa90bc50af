import type { Command } from 'commander'
import type { Marketplace } from '../../index.js'
import { examples, trimmed, webAddress } from '../terminal/command-options.js'
import type { Act, Context } from '../terminal/context.js'
import { DONE, NO, stopFor } from '../terminal/exit-codes.js'
import { checkDelivery, checkRegistrations } from './delivery.js'
import { checkRead, checkToken, createSkewWatch } from './platform.js'
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
      'Check the settings, the database and its grants, the platform, the clocks, a read, and with --public-url a ' +
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
    for (const check of ['store', 'events', 'token', 'clock', 'read', 'delivery'])
      report.add(check, skipped('the settings are not valid'))
    return
  }

  let marketplace: Marketplace | undefined
  await report.run('store', async () => {
    const opened = await context.open()
    marketplace = opened
    const { problems } = await opened.health()
    if (problems.length === 0)
      return ok('the database opens, this user may use its tables, and no work is delayed')
    return warning(
      problems.map(({ message }) => message).join('; '),
      problems.map(({ next }) => next).join(' '),
    )
  })
  const open = marketplace as Marketplace | undefined
  if (open) await report.run('events', () => checkRegistrations(open))
  else report.add('events', skipped('the database could not be opened'))

  await examinePlatform(context, await named(given, open), report)

  const { publicUrl } = given
  if (publicUrl === undefined) {
    report.add('delivery', skipped('no public address was given', 'Give --public-url <url>.'))
    return
  }
  const sender = await context.create({ store: 'sqlite::memory:', worker: false })
  const { targetUrl } = sender.webhooks
  await report.run('delivery', () => checkDelivery({ publicUrl, targetUrl, marketplace: open }))
}

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

/** The subscription and the business to test with: as given, or from the database. */
async function named(given: DoctorOptions, marketplace: Marketplace | undefined): Promise<Named> {
  const { business, subscription } = given
  if (subscription !== undefined || !marketplace)
    return { subscription_uid: subscription, business_uid: business }
  try {
    const filter = business === undefined ? {} : { businessUid: business }
    const [bought] = await marketplace.subscriptions.list({ ...filter, reason: 'purchased', limit: 1 })
    const [found] = bought ? [bought] : await marketplace.subscriptions.list({ ...filter, limit: 1 })
    return { subscription_uid: found?.subscription_uid, business_uid: business ?? found?.business_uid }
  } catch (error) {
    throw stopFor(error)
  }
}
