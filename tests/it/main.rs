//! The one integration binary: a module per theme, so that the library is linked once. Helpers are in `support`; what
//! stands behind and in front of the program (fixture server, client drivers) is in `tests/kit` and `tests/clients`.

mod auth;
mod cases_deadline;
mod cases_disconnect;
mod cases_duplicates;
mod cases_limits;
mod cases_proxy;
mod cases_scene;
mod cases_unknown;
mod cli;
mod clients_direct;
mod crash_descendants;
mod crash_load;
mod crash_points;
mod crash_processes;
mod crash_scene;
mod crash_shutdown;
mod crash_stopped;
mod crash_upstream;
mod exact_bytes;
mod handles;
mod hostile;
mod http_tools;
mod identity;
mod kit_direct;
mod lists;
mod secrets;
mod shadow;
mod startup;
mod support;
mod through;
mod tidy;
mod wrap_end;
