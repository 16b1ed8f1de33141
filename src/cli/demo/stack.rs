//! x
use super::super::args::StackArgs;
use super::super::failure::{Exit, Failure};
use super::super::stage::folder::Folder;
use super::story::Story;
use crate::serve::signals::Stop;
pub async fn play(_folder: &Folder, _story: Story, _args: &StackArgs, _stop: &Stop) -> Result<Exit, Failure> {
    Ok(Exit::Ok)
}
