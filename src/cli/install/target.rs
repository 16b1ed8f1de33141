//! Which files and which entries a command is about: looks where the client keeps its configuration, and picks the entries
//! that were named. Changes nothing.

use std::path::PathBuf;

use super::client::{Client, Place, Scope, Surroundings};
use super::document::{Document, Node};
use super::entry::Entry;
use super::file::Original;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::printable;

/// A configuration that is there.
#[derive(Debug)]
pub struct Target {
    /// Where it was looked for.
    pub place: Place,
    /// The file.
    pub original: Original,
    /// What is in it.
    pub document: Document,
}

/// An entry of a configuration.
#[derive(Clone, Debug)]
pub struct Found {
    /// The names that lead to it.
    pub at: Vec<String>,
    /// What it is.
    pub entry: Entry,
}

impl Found {
    /// The server's name.
    pub fn name(&self) -> &str {
        self.at.last().map_or("", String::as_str)
    }

    /// The project that it belongs to, where one file holds many.
    pub fn project(&self) -> Option<&str> {
        (self.at.first().is_some_and(|first| first == "projects")).then(|| self.at.get(1).map(String::as_str)).flatten()
    }

    /// The server's name as people can tell it from others.
    pub fn shown(&self) -> String {
        match self.project() {
            Some(project) => format!("{} (in {})", printable(self.name()), printable(project)),
            None => printable(self.name()),
        }
    }
}

impl Target {
    /// Reads a configuration; `None`: it is not there. Errors: it can not be read, or is no JSON.
    pub fn read(place: &Place) -> Result<Option<Target>, Failure> {
        let original = Original::read(&place.path)?;
        let Some(bytes) = &original.bytes else { return Ok(None) };
        let document = Document::read(bytes).map_err(|why| {
            Failure::usage(format!("{}: {why}", place.path.display())).next("correct the file; nothing was changed")
        })?;
        Ok(Some(Target { place: place.clone(), original, document }))
    }

    /// The entries of all servers. Errors: the place for servers holds something else.
    pub fn entries(&self, client: Client) -> Result<Vec<Found>, Failure> {
        let Some(root) = &self.document.root else { return Ok(Vec::new()) };
        let wrong = |why: String| Failure::usage(format!("{}: {why}", self.place.path.display()));
        if !root.is_object() {
            return Err(wrong("it is JSON, but no object".to_owned()));
        }
        let mut found = Vec::new();
        let mut paths = vec![vec![client.key().to_owned()]];
        if client == Client::ClaudeCode {
            let projects = root.get("projects").map_or(&[][..], Node::members);
            paths.extend(
                projects
                    .iter()
                    .map(|project| vec!["projects".to_owned(), project.name.clone(), client.key().to_owned()]),
            );
        }
        for path in paths {
            if path.len() == 1 && root.members().iter().filter(|member| member.name == path[0]).count() > 1 {
                return Err(wrong(format!(
                    "{:?} stands twice in it; which one the client reads is not known",
                    path[0]
                )));
            }
            let Some(servers) = root.at(&path) else { continue };
            if !servers.is_object() {
                return Err(wrong(format!("{:?} is no object", path.join("."))));
            }
            for (at, member) in servers.members().iter().enumerate() {
                if servers.members()[..at].iter().any(|earlier| earlier.name == member.name) {
                    return Err(wrong(format!("the server {:?} stands twice in it", printable(&member.name))));
                }
                let path = path.iter().cloned().chain([member.name.clone()]).collect();
                found.push(Found { at: path, entry: Entry::read(&member.value) });
            }
        }
        Ok(found)
    }
}

/// The places that a command is about.
pub fn places(client: Client, around: &Surroundings, (scope, file): (Option<Scope>, Option<&PathBuf>)) -> Vec<Place> {
    if let Some(file) = file {
        // It is where the user says; whose it is shows in nothing.
        return vec![Place { path: around.folder.join(file), scope: Scope::User }];
    }
    let mut places = client.places(around);
    places.retain(|place| scope.is_none_or(|scope| place.scope == scope));
    places
}

/// Reads what is there of these places. Errors: nothing is.
pub fn read(client: Client, places: &[Place]) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    for place in places {
        targets.extend(Target::read(place)?);
    }
    match targets.is_empty() {
        true => Err(not_found(client, places)),
        false => Ok(targets),
    }
}

/// The client keeps nothing in these places.
pub fn not_found(client: Client, places: &[Place]) -> Failure {
    let looked: Vec<String> = places.iter().map(|place| place.path.display().to_string()).collect();
    let words = format!("no configuration of {} was found; looked for {}", client.title(), looked.join(", "));
    Failure::new(Exit::NotFound, words)
        .next("add a server in the client first, or say where its configuration is with --config-file")
}

/// No entry has this name.
pub fn no_such_server(client: Client, name: &str, all: &[&Found]) -> Failure {
    let words = format!("{} has no server {:?}", client.title(), printable(name));
    let names: Vec<String> = all.iter().map(|found| found.shown()).collect();
    let next = match names.is_empty() {
        true => "it has none at all".to_owned(),
        false => format!("it has {}", names.join(", ")),
    };
    Failure::new(Exit::NotFound, words).next(next)
}
