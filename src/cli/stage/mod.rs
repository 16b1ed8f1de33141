//! What the demos and the bench stand on: a folder of their own, this program as guarded child processes in it, and plain
//! MCP callers. Tells nothing and judges nothing.

pub mod caller;
pub mod folder;
pub mod process;
pub mod program;
pub mod wire;
