//! Where programs are: this one, and those that entries name. Decides whether a client's least environment would find what a
//! command needs; runs nothing.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cli::failure::{Exit, Failure};

/// What is read of a script to find its interpreter.
const SHEBANG_BYTES_MAX: u64 = 256;

/// This program, by the path that stays when it is updated: a link in `path` that leads to it, else the file itself.
pub fn own(path: &str) -> Result<PathBuf, Failure> {
    let here = std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Failure, format!("this program does not know where it lies: {error}")))?;
    let real = fs::canonicalize(&here).map_err(|error| {
        let next = "install it again and run the new one";
        Failure::new(Exit::Failure, format!("{} is not there any more: {error}", here.display())).next(next)
    })?;
    let linked = find("durable-mcp", path).filter(|found| fs::canonicalize(found).is_ok_and(|found| found == real));
    Ok(linked.unwrap_or(real))
}

/// A program of this name in the folders of `path`.
pub fn find(name: &str, path: &str) -> Option<PathBuf> {
    folders(path).map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// The folders of a `PATH` that are absolute, each once; the passing ones of a shell's node manager by their lasting names.
pub fn lasting(path: &str) -> String {
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in folders(path) {
        if !kept.contains(&folder) {
            kept.push(folder);
        }
    }
    kept.iter().map(|folder| folder.to_string_lossy()).collect::<Vec<_>>().join(":")
}

fn folders(path: &str) -> impl Iterator<Item = PathBuf> {
    path.split(':').filter(|folder| folder.starts_with('/')).map(|folder| {
        let folder = PathBuf::from(folder);
        // fnm gives each shell a folder of links that is gone after the next restart.
        let passing = folder.components().any(|part| part.as_os_str() == "fnm_multishells");
        if passing { fs::canonicalize(&folder).unwrap_or(folder) } else { folder }
    })
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The `PATH` that a command needs: where the command, or a program that it starts itself, would not be found with the
/// `least` one but is with that of this shell, or beside the command.
pub fn path_for(command: &Path, args: &[String], (path, least): (&str, &str)) -> Option<String> {
    let missing = |name: &str| find(name, path).is_some_and(|found| find(name, least) != Some(found));
    let interpreter = interpreter(command);
    if let Some(name) = &interpreter
        && find(name, least).is_none()
        && find(name, path).is_none()
        && let Some(folder) = command.parent().and_then(Path::to_str)
        && find(name, folder).is_some()
    {
        return Some(lasting(&format!("{folder}:{path}")));
    }
    let by_name = command.file_name().and_then(|name| name.to_str()).is_some_and(missing);
    // `sh -c "npx …"`, `env npx …`: a program that starts others finds them by PATH.
    let named = args.iter().flat_map(|arg| arg.split_whitespace()).any(|word| is_plain(word) && missing(word));
    (by_name || interpreter.is_some_and(|name| missing(&name)) || named).then(|| lasting(path))
}

fn is_plain(word: &str) -> bool {
    !word.starts_with('-')
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// What a script asks `env` to run it with.
fn interpreter(command: &Path) -> Option<String> {
    let mut start = Vec::new();
    fs::File::open(command).ok()?.take(SHEBANG_BYTES_MAX).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let first = words.next()?;
    if !first.ends_with("/env") {
        return None;
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}
