//! The verbs against a real store in a file of its own, with a manual clock. What runs is in the test's hands: the local
//! worker hands each piece of work over and does nothing by itself.

mod closing;
mod doubts;
mod faults;
pub(crate) mod faulty;
mod hygiene;
mod keys;
mod leases;
mod patience;
mod reattach;
mod remote;
pub(crate) mod rig;
mod scheduler;
mod series;
mod submission;
mod waiting;
