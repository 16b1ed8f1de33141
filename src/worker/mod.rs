//! (see lib.rs)


pub mod upstream;
