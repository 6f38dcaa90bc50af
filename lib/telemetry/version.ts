/** The version of this package. Not read from package.json, which a bundle of an app does not contain. */
export const VERSION = '1.0.0'
