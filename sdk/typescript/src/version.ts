/** The version of this package, in one place that reads no files. */
export const VERSION = "0.1.0";
