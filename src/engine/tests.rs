//! The verbs against a store, with a manual clock.
