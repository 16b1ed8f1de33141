"""The version of this package, in one place that needs no installed metadata."""

VERSION = "0.1.0"
