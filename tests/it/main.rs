//! The one integration binary: a module per theme, so that the library is linked once. Helpers are in `support`; what
//! stands behind and in front of the program (fixture server, client drivers) is in `tests/kit` and `tests/clients`.

mod auth;
mod cli;
mod clients_direct;
mod hostile;
mod kit_direct;
mod secrets;
mod startup;
mod support;
mod through;
mod tidy;
