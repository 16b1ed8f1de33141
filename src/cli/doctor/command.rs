//! Whether a program can be started: looked for as the system would, and its absence explained. Starts nothing.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What is in the way of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// No folder of `PATH` has it.
    NotInPath,
    /// There is no such file.
    Missing(PathBuf),
    /// It is a folder.
    Folder(PathBuf),
    /// It may not be executed.
    NotExecutable(PathBuf),
    /// It is a script, and what should read it is not there. The system calls that "no such file" too.
    NoInterpreter {
        /// The script.
        script: PathBuf,
        /// What its first line names.
        interpreter: String,
    },
}

impl Obstacle {
    /// What is wrong and what to do, for the program `name`.
    pub fn told(&self, name: &str) -> (String, String) {
        match self {
            Obstacle::NotInPath => (
                format!("no folder of PATH has a program `{name}` (ENOENT)"),
                format!("install it, or write its whole path; `command -v {name}` in a shell shows it"),
            ),
            Obstacle::Missing(path) => (
                format!("there is no file {} (ENOENT)", path.display()),
                "correct the path; one with a `/` in it is relative to the configuration file".into(),
            ),
            Obstacle::Folder(path) => (format!("{} is a folder", path.display()), "name the program in it".into()),
            Obstacle::NotExecutable(path) => (
                format!("{} may not be executed (EACCES)", path.display()),
                format!("chmod +x {}, or name the interpreter as the command", path.display()),
            ),
            Obstacle::NoInterpreter { script, interpreter } => (
                format!(
                    "{} is a script whose first line names {interpreter}, which is not there (the system says ENOENT, as \
                     if the script were missing)",
                    script.display()
                ),
                "install that interpreter or correct the first line; a carriage return at its end counts too".into(),
            ),
        }
    }
}

/// Finds the program that a start of `name` would run, with this `PATH`. A name with a `/` is a path already.
pub fn find(name: &Path, path: &str) -> Result<PathBuf, Obstacle> {
    if name.to_string_lossy().contains('/') {
        return usable(name);
    }
    let mut nearest = Obstacle::NotInPath;
    for folder in std::env::split_paths(path) {
        // An empty part means the working directory.
        match usable(&folder.join(name)) {
            Ok(found) => return Ok(found),
            Err(Obstacle::Missing(_) | Obstacle::Folder(_)) => {}
            Err(obstacle) => nearest = obstacle,
        }
    }
    Err(nearest)
}

fn usable(file: &Path) -> Result<PathBuf, Obstacle> {
    let Ok(metadata) = file.metadata() else { return Err(Obstacle::Missing(file.to_owned())) };
    if metadata.is_dir() {
        return Err(Obstacle::Folder(file.to_owned()));
    }
    if metadata.permissions().mode() & 0o111 == 0 || rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_err() {
        return Err(Obstacle::NotExecutable(file.to_owned()));
    }
    match interpreter(file) {
        Some(interpreter) if !Path::new(&interpreter).exists() => Err(Obstacle::NoInterpreter {
            script: file.to_owned(),
            interpreter: interpreter.escape_debug().to_string(),
        }),
        _ => Ok(file.to_owned()),
    }
}

/// What the first line of a script names: `#!/usr/bin/env node` names `/usr/bin/env`.
fn interpreter(file: &Path) -> Option<String> {
    let mut start = [0; 256];
    let read = File::open(file).and_then(|mut file| file.read(&mut start)).ok()?;
    let line = start[..read].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = String::from_utf8_lossy(line).trim_start_matches([' ', '\t']).to_owned();
    // A carriage return is part of the name, which is why a script saved on Windows "does not exist".
    words.split([' ', '\t']).next().filter(|word| !word.is_empty()).map(str::to_owned)
}
