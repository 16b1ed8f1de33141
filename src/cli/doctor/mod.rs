//! `doctor`: finds what is wrong around the program.

use super::args::DoctorArgs;
use super::failure::{Exit, Failure};
use super::output::Output;

/// Runs the command.
pub async fn run(_args: DoctorArgs, _out: Output) -> Result<Exit, Failure> {
    Ok(Exit::Ok)
}
