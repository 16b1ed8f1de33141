//! What is to be done to one file: for each entry what becomes of it, and the file's next state. Pure but for looking up
//! programs; writes nothing.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::client::{Client, Surroundings};
use super::document::Document;
use super::edit::{self, Edits, Hand, Pairs};
use super::entry::Entry;
use super::record::{Change, Record};
use super::rewrite::{self, Wrapping};
use super::secret::has_secret;
use super::target::{Found, Target};
use super::{program, undo};
use crate::model::json::quoted;

/// The name of the entry that leads to a running `serve`.
pub const CONNECTED: &str = "durable-mcp";

/// What becomes of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The client.
    pub client: &'static str,
    /// The file.
    pub file: String,
    /// The server.
    pub server: String,
    /// The project it belongs to, where one file holds many.
    pub project: Option<String>,
    /// What is done.
    pub action: Action,
    /// The name of its store.
    pub store: Option<String>,
    /// Why, or what to know about it.
    pub note: Option<String>,
}

/// What is done to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is put behind `wrap`.
    Wrapped,
    /// It is there already, and the program has moved.
    Updated,
    /// It is as it should be.
    Unchanged,
    /// It is left alone.
    Refused,
    /// It is new.
    Added,
    /// It is as it was before.
    Restored,
    /// It is taken out.
    Removed,
}

/// A file's next state.
#[derive(Debug)]
pub struct Plan {
    /// One for each entry.
    pub rows: Vec<Row>,
    /// The next text; `None`: nothing changes.
    pub next: Option<Document>,
    /// The file is taken away.
    pub delete: bool,
    /// What will be known of the file.
    pub record: Record,
}

/// What all plans of a command share.
pub struct Planner<'a> {
    /// The client.
    pub client: Client,
    /// Where we are.
    pub around: &'a Surroundings,
    /// This program.
    pub program: String,
    /// The data folder, where it is not the usual one.
    pub data_dir: Option<String>,
    /// The servers were named one by one.
    pub named: bool,
    /// Names of stores that other entries have.
    pub taken: Vec<(String, std::path::PathBuf, Vec<String>)>,
}

impl Planner<'_> {
    /// Puts entries behind `wrap`.
    pub fn install(&mut self, target: &Target, found: &[Found], record: Record) -> Result<Plan, String> {
        let (mut edits, mut rows, mut changes) = (Edits::default(), Vec::new(), Vec::new());
        for found in found {
            let Some(node) = target.document.root.as_ref().and_then(|root| root.at(&found.at)) else { continue };
            let mut row = self.row(target, found);
            match &found.entry {
                Entry::Foreign(why) => (row.action, row.note) = (Action::Refused, Some(why.clone())),
                Entry::Http { url, headers } if !self.named && headers.is_empty() && may_sign_in(url) => {
                    let words = "the client may sign in to this server by itself (OAuth), which `wrap` can not; name it with \
                                 --server to wrap it all the same";
                    (row.action, row.note) = (Action::Refused, Some(words.to_owned()));
                }
                Entry::Wrapped { program, .. } | Entry::Connected { program } if *program == self.program => {}
                entry => {
                    let (wrapping, note) = self.wrapping(target, found, entry);
                    let wraps = matches!(entry, Entry::Stdio { .. } | Entry::Http { .. });
                    row.action = if wraps { Action::Wrapped } else { Action::Updated };
                    row.note = note;
                    if wraps {
                        row.store = Some(wrapping.name.clone());
                    }
                    edits.merge(rewrite::wrap(&target.document.text, node, entry, &wrapping));
                    changes.push((found.at.clone(), wraps, wrapping, target.document.of(node).to_owned()));
                }
            }
            rows.push(row);
        }
        let mut plan = Plan { rows, next: None, delete: false, record };
        if edits.is_empty() {
            return Ok(plan);
        }
        let next = target.document.with(edits.apply(&target.document.text))?;
        for (at, wraps, wrapping, original) in changes {
            let installed = next.root.as_ref().and_then(|root| root.at(&at)).ok_or("an entry is lost by the change")?;
            let (Entry::Wrapped { .. } | Entry::Connected { .. }) = Entry::read(installed) else {
                return Err("an entry is not what it should be after the change".to_owned());
            };
            let installed = next.of(installed).to_owned();
            let variables = [("PATH", wrapping.path), ("DURABLE_MCP_DATA_DIR", wrapping.data_dir)];
            let variables = variables.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
            match plan.record.changes.iter_mut().find(|change| change.at == at) {
                // The program moved: what was there before `wrap` is known already.
                Some(known) if !wraps => known.installed = installed,
                // What somebody else put behind `wrap` goes back to that.
                _ if !wraps => plan.record.note(Change { at, original, installed, ..Change::default() }),
                _ => plan.record.note(Change {
                    at,
                    store: Some(wrapping.name),
                    original,
                    installed,
                    command: Some(wrapping.command),
                    variables,
                    ..Change::default()
                }),
            }
        }
        plan.next = Some(next);
        Ok(plan)
    }

    /// Adds the entry that leads to a running `serve`.
    pub fn connect(&self, target: &Target, url: Option<&str>, mut record: Record) -> Result<Plan, String> {
        let client = self.client;
        let mut args = vec!["connect".to_owned()];
        args.extend(url.into_iter().flat_map(|url| ["--url".to_owned(), url.to_owned()]));
        let mut pairs = Pairs::new();
        if client == Client::Vscode {
            pairs.push(("type".to_owned(), quoted("stdio")));
        }
        pairs.push(("command".to_owned(), quoted(&self.program)));
        let text = &target.document.text;
        let at = vec![client.key().to_owned(), CONNECTED.to_owned()];
        let mut row = self.row(target, &Found { at: at.clone(), entry: Entry::Foreign(String::new()) });
        (row.action, row.note) = (Action::Added, None);
        let mut edits = Edits::default();
        let mut entry = |outer: &Hand<'_>| {
            pairs.push(("args".to_owned(), edit::array(&args, outer)));
            edit::object(&pairs, outer)
        };
        let named = |name: &str, value: String| vec![(name.to_owned(), value)];
        let end = match &target.document.root {
            None => {
                let hand = |lead| Hand { lead, colon: ": ", step: "  " };
                let servers = edit::object(&named(CONNECTED, entry(&hand("\n    "))), &hand("\n  "));
                edits.insert(text.len(), edit::object(&named(client.key(), servers), &hand("\n")));
                Vec::new()
            }
            Some(root) => match root.get(client.key()) {
                Some(servers) => {
                    let outer = Hand::of(text, root);
                    let deeper = outer.deeper();
                    let own = match servers.members().is_empty() {
                        true => Hand { lead: &deeper, ..outer },
                        false => Hand::of(text, servers),
                    };
                    edit::append_members(&mut edits, text, (servers, &outer), &named(CONNECTED, entry(&own)));
                    at.clone()
                }
                None => {
                    let lead = if root.members().is_empty() { Some("\n  ") } else { None };
                    let own = Hand::of(text, root);
                    let own = Hand { lead: lead.unwrap_or(own.lead), ..own };
                    let deeper = own.deeper();
                    let servers = edit::object(&named(CONNECTED, entry(&Hand { lead: &deeper, ..own })), &own);
                    let around = Hand { lead: "\n", ..own };
                    edit::append_members(&mut edits, text, (root, &around), &named(client.key(), servers));
                    vec![client.key().to_owned()]
                }
            },
        };
        let inserted = edits.only().map(str::to_owned);
        let mut next = target.document.with(edits.apply(text))?;
        if target.original.bytes.is_none() {
            next = next.with(format!("{}\n", next.text))?;
            record.created = true;
        }
        let installed = next.root.as_ref().and_then(|root| root.at(&at)).map(|node| next.of(node).to_owned());
        let installed = installed.ok_or("the entry is lost by the change")?;
        record.note(Change { at, installed, inserted, inserted_at: end, ..Change::default() });
        Ok(Plan { rows: vec![row], next: Some(next), delete: false, record })
    }

    /// Takes back what was done to entries.
    pub fn uninstall(&self, target: &Target, found: &[Found], mut record: Record) -> Result<Plan, String> {
        let mut rows = Vec::new();
        let mut document = target.document.clone();
        for found in found {
            let mut row = self.row(target, found);
            // Each step sees the text that the one before left.
            let Some(node) = document.root.as_ref().and_then(|root| root.at(&found.at)) else { continue };
            let change = record.change(&found.at).cloned();
            let undone = match &found.entry {
                Entry::Wrapped { .. } => {
                    row.action = Action::Restored;
                    if change.is_none() {
                        let words = "there is no record of what it was; its program stays written as an absolute path";
                        row.note = Some(words.to_owned());
                    }
                    undo::unwrap(&document.text, node, change.as_ref())
                }
                Entry::Connected { .. } => {
                    row.action = Action::Removed;
                    Ok(remove(&document, &found.at, change.as_ref()))
                }
                _ => continue,
            };
            match undone {
                Ok(edits) => {
                    document = document.with(edits.apply(&document.text))?;
                    record.changes.retain(|change| change.at != found.at);
                }
                Err(why) => (row.action, row.note) = (Action::Refused, Some(why)),
            }
            rows.push(row);
        }
        let delete = record.created && document.root.as_ref().is_none_or(|root| root.members().is_empty());
        let next = (document.text != target.document.text).then_some(document);
        Ok(Plan { rows, next, delete, record })
    }

    fn row(&self, target: &Target, found: &Found) -> Row {
        let store = match &found.entry {
            Entry::Wrapped { name, .. } => name.clone(),
            _ => None,
        };
        Row {
            client: self.client.name(),
            file: target.place.path.display().to_string(),
            server: found.name().to_owned(),
            project: found.project().map(str::to_owned),
            action: Action::Unchanged,
            store,
            note: None,
        }
    }

    /// What an entry is to become, and what there is to know about it.
    fn wrapping(&mut self, target: &Target, found: &Found, entry: &Entry) -> (Wrapping, Option<String>) {
        let mut wrapping = Wrapping {
            program: self.program.clone(),
            name: self.store(target, found),
            command: String::new(),
            path: None,
            data_dir: self.data_dir.clone(),
        };
        let mut note = None;
        match entry {
            Entry::Stdio { command, args, path } => {
                let own = self.around.env.get("PATH").cloned().unwrap_or_default();
                let looked_in = path.as_deref().filter(|path| !path.contains("${")).unwrap_or(&own);
                let is_name = !command.contains(['/', '\\']) && !command.contains("${");
                let at = if is_name { program::find(command, looked_in) } else { None };
                if is_name && at.is_none() {
                    note = Some(format!(
                        "{command} is not in PATH here; it stays as it is, and its client has to find it"
                    ));
                }
                wrapping.command = at.map_or_else(|| command.clone(), |at| at.to_string_lossy().into_owned());
                let least = Client::least_path(self.around.system);
                if path.is_none() {
                    wrapping.path = program::path_for(Path::new(&wrapping.command), args, (&own, least));
                }
            }
            Entry::Http { headers, .. } if headers.is_empty() => {
                let words =
                    "if the client signs in to this server by itself (OAuth), `wrap` can not: take it back then";
                note = Some(words.to_owned());
            }
            _ => {}
        }
        (wrapping, note)
    }

    /// A name for the store of an entry that no other entry has: stores of two servers must not mix.
    fn store(&mut self, target: &Target, found: &Found) -> String {
        let plain: String =
            found.name().chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
        let plain: String = plain.trim_matches('-').chars().take(40).collect();
        let plain = if plain.is_empty() { "server".to_owned() } else { plain };
        let own = |path: &Path, at: &[String]| path == target.original.path && at == found.at;
        let candidates = (0u32..).map(|n| match n {
            0 => plain.clone(),
            1 => format!("{plain}-{}", self.client.name()),
            n => format!("{plain}-{}-{n}", self.client.name()),
        });
        let free = |name: &String| !self.taken.iter().any(|(taken, path, at)| taken == name && !own(path, at));
        let name = candidates.into_iter().find(free).unwrap_or(plain.clone());
        self.taken.push((name.clone(), target.original.path.clone(), found.at.clone()));
        name
    }
}

/// Whether a server that is sent no credential may ask for one: any but those of this machine.
fn may_sign_in(url: &str) -> bool {
    let host = reqwest::Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned()));
    let here = host.is_some_and(|host| {
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    });
    !here && !has_secret(url)
}

/// Takes an added entry out: exactly what was put in, where that is still there, else the entry alone.
fn remove(document: &Document, at: &[String], change: Option<&Change>) -> Edits {
    let mut edits = Edits::default();
    let Some(root) = &document.root else { return edits };
    if let Some(change) = change
        && let Some(inserted) = &change.inserted
        && let Some(node) = root.at(&change.inserted_at)
    {
        // What was put in may go on behind the value: a line break before the closing brace.
        let tail = inserted.len() - inserted.rfind('}').map_or(0, |brace| brace + 1);
        let end = node.span.end + tail;
        if let Some(start) = end.checked_sub(inserted.len())
            && document.text.get(start..end) == Some(inserted)
        {
            edits.replace(start..end, "");
            return edits;
        }
    }
    if let Some((name, parent)) = at.split_last()
        && let Some(servers) = root.at(parent)
    {
        edit::remove_member(&mut edits, &document.text, servers, name);
    }
    edits
}
