/** The version of this package. Not read from package.json, which a bundle of an app does not contain. */
export const VERSION = '0.1.0'
