//! `init`: writes a configuration to begin with, from a client's servers or with examples. Writes one file, and no secret into
//! it unless that is asked for; starts nothing.

mod blank;
mod secrets;
mod servers;

#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use self::secrets::Variables;
use self::servers::Source;
use super::args::InitArgs;
use super::failure::{Exit, Failure};
use super::install::client::{Client, Place, Scope, Surroundings};
use super::install::surroundings;
use super::install::target::{self, Target};
use super::output::{Output, printable};
use crate::config::{Overrides, load};

/// Runs the command.
pub fn run(args: InitArgs, out: Output) -> Result<Exit, Failure> {
    let to_stdout = args.out.as_os_str() == "-";
    if !to_stdout && !args.force && args.out.exists() {
        let words = format!("{} is there already", args.out.display());
        return Err(Failure::new(Exit::Conflict, words).next("write over it with --force, or elsewhere with --out"));
    }
    let mut variables = Variables::new(args.keep_secrets);
    let (text, from) = match &args.from {
        None => (blank::file(), None),
        Some(from) => {
            let around = surroundings()?;
            let (client, targets) = sources(from, &around)?;
            let mut servers = servers::Servers::default();
            for target in &targets {
                let source = Source { client, around: &around, target };
                servers.take(&source, &mut variables)?;
            }
            let title = client.map_or_else(|| from.clone(), |client| client.title().to_owned());
            (servers.file(&title), Some((servers.count(), title)))
        }
    };
    if to_stdout {
        out.write(&text)?;
    } else {
        write(&args.out, &text, args.keep_secrets)?;
    }
    let name = args.out.display();
    if let Some((count, from)) = from {
        let plural = if count == 1 { "" } else { "s" };
        eprintln!("{count} server{plural} of {} in {name}", printable(&from));
    } else if !to_stdout {
        eprintln!("{name}: every setting with its default, and examples");
    }
    variables.tell();
    if !to_stdout {
        check(&args.out, &variables)?;
        eprintln!("start it with: durable-mcp serve --config {name}");
    }
    Ok(Exit::Ok)
}

/// The configurations that are named: those of a client, or a file.
fn sources(from: &str, around: &Surroundings) -> Result<(Option<Client>, Vec<Target>), Failure> {
    if let Ok(client) = Client::from_str(from, false) {
        let places = client.places(around);
        return Ok((Some(client), target::read(client, &places)?));
    }
    let place = Place { path: around.folder.join(from), scope: Scope::User };
    match Target::read(&place)? {
        Some(target) => Ok((None, vec![target])),
        None => {
            let names: Vec<&str> = Client::value_variants().iter().map(|client| client.name()).collect();
            let words = format!("{} is neither a client nor a file", printable(from));
            Err(Failure::new(Exit::NotFound, words).next(format!("name a file, or one of {}", names.join(", "))))
        }
    }
}

fn write(path: &Path, text: &str, secret: bool) -> Result<(), Failure> {
    let unwritable = |error: io::Error| {
        Failure::new(Exit::Failure, format!("{} can not be written: {error}", path.display()))
            .next("name another place with --out")
    };
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", std::process::id()));
    let draft = path.with_file_name(name);
    let _ = fs::remove_file(&draft);
    let mode = if secret { 0o600 } else { 0o644 };
    let written = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path)
    });
    written.map_err(|error| {
        let _ = fs::remove_file(&draft);
        unwritable(error)
    })
}

/// Reads the file as `serve` will, with the variables set.
fn check(path: &Path, variables: &Variables) -> Result<(), Failure> {
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .chain(variables.names().map(|name| (name.to_owned(), "set-later".to_owned())));
    let loaded = load(Some(&PathBuf::from(path)), &Overrides::default(), &env.collect());
    loaded.map(|_| ()).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::usage(lines.join("\nerror: "))
    })
}
