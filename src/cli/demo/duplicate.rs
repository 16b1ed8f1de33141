//! x
use super::super::failure::{Exit, Failure};
use super::super::stage::folder::Folder;
use super::story::Story;
pub async fn play(_folder: &Folder, _story: Story) -> Result<Exit, Failure> {
    Ok(Exit::Ok)
}
