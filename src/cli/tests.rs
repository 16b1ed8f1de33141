//! The command line: what parses, what it prints, and how it ends.

mod calls;
mod commands;
mod databases;
mod page;
mod parsing;
mod schemas;
