//! `demo`: failure scenes with real processes in a folder of their own, really killed or stopped, told as they happen from
//! what the store says. Each ends with counts and a verdict. Touches nothing of the user's.

mod cast;
mod crash;
mod duplicate;
mod fencing;
mod judge;
mod load;
mod log;
mod retry;
mod stack;
mod story;
#[cfg(test)]
mod tests;

use super::args::{DemoArgs, DemoCommand, SceneArgs};
use super::failure::{Exit, Failure};
use super::output::Output;
use super::stage::folder::Folder;
use crate::serve::signals;
use cast::Cast;
pub use story::Report;
use story::Story;

/// Runs the command. Ctrl-C ends a scene, its processes and its folder.
pub async fn run(args: DemoArgs, out: Output) -> Result<Exit, Failure> {
    let stop = signals::follow()
        .map_err(|error| Failure::new(Exit::Failure, format!("signals can not be followed: {error}")))?;
    let (name, scene) = match &args.command {
        DemoCommand::Fencing(scene) => ("fencing", scene),
        DemoCommand::Duplicate(scene) => ("duplicate", scene),
        DemoCommand::Retry(scene) => ("retry", scene),
        DemoCommand::Crash(scene) => ("crash", scene),
        DemoCommand::Stack(stack) => ("stack", &stack.scene),
    };
    let folder = folder(scene)?;
    let story = Story::begin(name, out, scene.json);
    let played = async {
        match args.command {
            DemoCommand::Fencing(_) => fencing::play(&folder, story).await,
            DemoCommand::Duplicate(_) => duplicate::play(&folder, story).await,
            DemoCommand::Retry(_) => retry::play(&folder, story).await,
            DemoCommand::Crash(_) => crash::play(&folder, story).await,
            DemoCommand::Stack(ref args) => stack::play(&folder, story, args, &stop).await,
        }
    };
    // The stack has its own way to end in order.
    let asked_to_end = if name == "stack" { &stop.now } else { &stop.soon };
    tokio::select! {
        ended = played => ended,
        () = asked_to_end.cancelled() => Ok(Exit::Interrupted),
    }
}

fn folder(scene: &SceneArgs) -> Result<Folder, Failure> {
    let folder = Folder::make("demo", scene.keep)?;
    if folder.is_kept() {
        eprintln!("store, ledgers and logs stay in {}", folder.path().display());
    }
    Ok(folder)
}

/// How long anything of a scene may take before the scene is called broken.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// What every scene sets up: the site with its configuration and the story.
fn set_up(folder: &Folder, config: &str) -> Result<Cast, Failure> {
    Cast::new(folder.path(), config)
}
