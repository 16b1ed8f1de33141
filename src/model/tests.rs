//! Properties of the rules.
