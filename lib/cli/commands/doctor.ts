import type { Command } from 'commander'
import type { Marketplace } from '../../index.js'
import { examples, trimmed, webAddress } from '../command-options.js'
import type { Act, Context } from '../context.js'
import { checkDelivery, checkRegistrations } from '../doctor-delivery.js'
import { checkRead, checkToken, createSkewWatch } from '../doctor-platform.js'
import { createReport, ok, skipped, warning } from '../doctor-report.js'
import { DONE, NO, stopFor } from '../exit-codes.js'

interface DoctorOptions {
  business?: string
  subscription?: string
  publicUrl?: string
}

type Named = { subscription_uid: string | undefined; business_uid: string | undefined }

export function addDoctor(program: Command, act: Act) {
  program
    .command('doctor')
    .summary('find out what is wrong, and how to mend it')
    .description(
      'Check the settings, the database and its grants, the platform, the clocks, a read, and with --public-url a ' +
        'delivery through the public address, which the journal keeps as unrecognised. Exit code 1: a check failed.',
    )
    .option('--business <uid>', 'a business that has the app; else one of the database', trimmed)
    .option('--subscription <uid>', 'a subscription of it; else one of the database', trimmed)
    .option('--public-url <url>', 'where the platform reaches the router, without the secret', webAddress)
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
      "app.purchasableUid is not set: every subscription that is named counts as the app's own",
      'Set MARKETPLACE_PURCHASABLE_UID to the item that the app is sold as.',
    )
  })
  if (!settings) {
    for (const check of ['store', 'events', 'token', 'clock', 'read', 'delivery'])
      report.add(check, skipped('the settings come first'))
    return
  }

  let marketplace: Marketplace | undefined
  await report.run('store', async () => {
    const opened = await context.open()
    marketplace = opened
    const { problems } = await opened.health()
    if (problems.length === 0) return ok('it opens, this user may use its tables, and nothing is held up')
    return warning(
      problems.join('; '),
      'Look at `journal list --dead`, and at the health() of the running app.',
    )
  })
  const open = marketplace as Marketplace | undefined
  if (open) await report.run('events', () => checkRegistrations(open))
  else report.add('events', skipped('the database could not be opened'))

  await examinePlatform(context, await named(given, open), report)

  const { publicUrl } = given
  if (publicUrl === undefined) {
    report.add('delivery', skipped('no address to try', 'Give --public-url <url>.'))
    return
  }
  const sender = await context.create({ store: 'sqlite::memory:', worker: false })
  const { targetUrl } = sender
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
    'no business is known here to try it with',
    'Give --business <uid> of one that has the app.',
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
      skipped('no subscription is known here to try it with', 'Give --business and --subscription.'),
    )
  else if (!hasToken) report.add('read', skipped('the token comes first'))
  else
    await report.run('read', () =>
      checkRead((replaced) => context.create({ ...replaced, platform: watched }), {
        subscription_uid,
        business_uid,
      }),
    )
}

/** What to try it with: as given, or one that was read before. */
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
