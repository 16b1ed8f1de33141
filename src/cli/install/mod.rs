//! `install` and `uninstall`: a client's servers behind `wrap`, and back again. Shows what changes, asks, keeps a copy, and
//! replaces the file in one step. What changes is decided in `plan`; nothing else of the file is touched.

pub mod client;
mod diff;
pub mod document;
mod edit;
pub mod entry;
mod file;
mod plan;
mod program;
pub mod record;
mod rewrite;
pub mod secret;
pub mod target;
mod undo;

pub use plan::Row;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use self::client::{Place, Scope, Surroundings, System};
use self::document::Document;
use self::entry::Entry;
use self::file::Original;
use self::plan::{Action, CONNECTED, Plan, Planner};
use self::record::{Record, Records};
use self::target::{Found, Target};
use super::address::Address;
use super::args::{ConfigFlags, InstallArgs, InstallFlags, UninstallArgs};
use super::failure::{Exit, Failure};
use super::output::{Output, printable};

/// Where we are: the system, the user and the working folder of this process. Errors: there is no user's folder.
pub fn surroundings() -> Result<Surroundings, Failure> {
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let home = env.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = home.ok_or_else(|| Failure::usage("HOME is not set, so no client's configuration can be found"))?;
    let folder = std::env::current_dir()
        .map_err(|error| Failure::new(Exit::Failure, format!("the working directory is not there: {error}")))?;
    Ok(Surroundings { system: System::here(), home, env, folder })
}

/// One command at work.
struct Run {
    flags: InstallFlags,
    around: Surroundings,
    records: Records,
    out: Output,
}

/// Runs `install`.
pub fn install(args: InstallArgs, out: Output) -> Result<Exit, Failure> {
    let run = Run::new(args.flags, out)?;
    let mut planner = run.planner()?;
    if args.connect {
        if let Some(url) = &args.url {
            Address::parse(url)?;
        }
        return run.connect(&planner, args.url.as_deref());
    }
    let client = run.flags.client;
    let targets = target::read(client, &run.places())?;
    let mut found = Vec::new();
    for target in targets {
        let entries = target.entries(client)?;
        found.push((target, entries));
    }
    let picked = run.pick(found)?;
    let mut shown = 0;
    for (target, entries) in picked {
        let record = run.record(&target);
        let plan = planner.install(&target, &entries, record).map_err(|why| broken(&target, &why))?;
        shown += plan.rows.len();
        run.carry_out(&target, plan)?;
    }
    if shown == 0 {
        eprintln!("{} has no servers to put behind durable-mcp", client.title());
    }
    Ok(Exit::Ok)
}

/// Runs `uninstall`.
pub fn uninstall(args: UninstallArgs, out: Output) -> Result<Exit, Failure> {
    let run = Run::new(args.flags, out)?;
    let planner = run.planner()?;
    let client = run.flags.client;
    let mut places = run.places();
    if run.flags.config_file.is_none() && run.flags.scope.is_none() {
        // Files in other places, and those of other projects.
        for record in run.records.all().into_iter().filter(|record| record.client == client.name()) {
            if places.iter().all(|place| std::fs::canonicalize(&place.path).map_or(true, |path| path != record.file)) {
                places.push(Place { path: record.file, scope: Scope::User });
            }
        }
    }
    let mut ours = Vec::new();
    let mut left: Vec<Found> = Vec::new();
    for target in target::read(client, &places)? {
        let (mine, others): (Vec<Found>, Vec<Found>) = target
            .entries(client)?
            .into_iter()
            .partition(|found| matches!(found.entry, Entry::Wrapped { .. } | Entry::Connected { .. }));
        left.extend(others);
        ours.push((target, mine));
    }
    for name in &run.flags.servers {
        let known = |entries: &[Found]| entries.iter().any(|found| found.name() == name);
        if !ours.iter().any(|(_, entries)| known(entries)) {
            if known(&left) {
                let words = format!("{:?} is not behind durable-mcp", printable(name));
                return Err(Failure::new(Exit::NotFound, words).next("there is nothing to take back"));
            }
            let all: Vec<&Found> = ours.iter().flat_map(|(_, entries)| entries).collect();
            return Err(target::no_such_server(client, name, &all));
        }
    }
    let mut done = 0;
    for (target, mut entries) in ours {
        entries
            .retain(|found| run.flags.servers.is_empty() || run.flags.servers.iter().any(|name| name == found.name()));
        let plan = planner.uninstall(&target, &entries, run.record(&target)).map_err(|why| broken(&target, &why))?;
        done += plan.rows.len();
        run.carry_out(&target, plan)?;
    }
    if done == 0 {
        eprintln!("nothing in the configuration of {} is behind durable-mcp", client.title());
    }
    Ok(Exit::Ok)
}

fn broken(target: &Target, why: &str) -> Failure {
    Failure::new(Exit::Failure, format!("{}: {why}", target.place.path.display())).next("nothing was changed")
}

impl Run {
    fn new(flags: InstallFlags, out: Output) -> Result<Run, Failure> {
        let data_dir = ConfigFlags::default().load(|_| {})?.data_dir;
        Ok(Run { flags, around: surroundings()?, records: Records::of(&data_dir), out })
    }

    fn planner(&self) -> Result<Planner<'_>, Failure> {
        let path = self.around.env.get("PATH").map(String::as_str).unwrap_or_default();
        let program = program::own(path)?.to_string_lossy().into_owned();
        // A client knows nothing of the variable that says where executions are kept here.
        let data_dir = self.around.env.get("DURABLE_MCP_DATA_DIR").filter(|folder| !folder.is_empty());
        let data_dir = data_dir.map(|folder| self.around.folder.join(folder).to_string_lossy().into_owned());
        let taken = self.records.all().into_iter().flat_map(|record| {
            let file = record.file;
            record.changes.into_iter().filter_map(move |change| Some((change.store?, file.clone(), change.at)))
        });
        let taken = taken.collect();
        let named = !self.flags.servers.is_empty();
        Ok(Planner { client: self.flags.client, around: &self.around, program, data_dir, named, taken })
    }

    fn places(&self) -> Vec<Place> {
        target::places(self.flags.client, &self.around, (self.flags.scope, self.flags.config_file.as_ref()))
    }

    fn record(&self, target: &Target) -> Record {
        self.records.read(&target.original.path).unwrap_or_else(|| Record {
            file: target.original.path.clone(),
            client: self.flags.client.name().to_owned(),
            ..Record::default()
        })
    }

    /// The entries that the command is about.
    fn pick(&self, found: Vec<(Target, Vec<Found>)>) -> Result<Vec<(Target, Vec<Found>)>, Failure> {
        let client = self.flags.client;
        let all: Vec<&Found> = found.iter().flat_map(|(_, entries)| entries).collect();
        for name in &self.flags.servers {
            let named: Vec<&&Found> = all.iter().filter(|found| found.name() == name).collect();
            if named.is_empty() {
                return Err(target::no_such_server(client, name, &all));
            }
            // Of one that was named, a refusal is a failure.
            if let [Found { entry: Entry::Foreign(why), .. }] = named[..] {
                let words = format!("{:?} can not be put behind durable-mcp: {why}", printable(name));
                return Err(Failure::new(Exit::Failure, words).next("it is left as it is"));
            }
        }
        if self.flags.servers.is_empty() && !self.flags.all && !self.flags.yes && !io::stdin().is_terminal() {
            let names: Vec<String> = all.iter().map(|found| found.shown()).collect();
            let words = match names.is_empty() {
                true => return Ok(found),
                false => format!("{} has {}", client.title(), names.join(", ")),
            };
            return Err(Failure::usage(words).next("name servers with --server NAME, or take all of them with --all"));
        }
        if !self.flags.servers.is_empty() {
            let named = |found: &Found| self.flags.servers.iter().any(|name| name == found.name());
            let keep = |(target, mut entries): (Target, Vec<Found>)| {
                entries.retain(named);
                (target, entries)
            };
            return Ok(found.into_iter().map(keep).collect());
        }
        // What others share is changed only when it was named, or when there is nothing else.
        let has_own = found.iter().any(|(target, entries)| target.place.scope == Scope::User && !entries.is_empty());
        let asked = self.flags.scope.is_some();
        Ok(found.into_iter().filter(|(target, _)| asked || !has_own || target.place.scope == Scope::User).collect())
    }

    /// Adds the entry of `connect`.
    fn connect(&self, planner: &Planner<'_>, url: Option<&str>) -> Result<Exit, Failure> {
        let client = self.flags.client;
        let places = self.places();
        let mut target = None;
        for place in &places {
            target = target.or(Target::read(place)?);
        }
        let target = match target {
            Some(target) => target,
            None => {
                // A client that was never started here has not even a folder.
                let likely = places.iter().find(|place| {
                    let asked = self.flags.config_file.is_some() || self.flags.scope == Some(Scope::Project);
                    asked || place.path.parent().is_some_and(|folder| folder.is_dir() && place.scope == Scope::User)
                });
                let Some(place) = likely else { return Err(target::not_found(client, &places)) };
                let document = Document { text: String::new(), has_mark: false, root: None };
                let original = Original { path: place.path.clone(), bytes: None };
                Target { place: place.clone(), original, document }
            }
        };
        let taken = target.entries(client)?.into_iter().find(|found| found.at == [client.key(), CONNECTED]);
        let plan = match taken {
            Some(found) if matches!(found.entry, Entry::Connected { .. }) => {
                let node = target.document.root.as_ref().and_then(|root| root.at(&found.at));
                let named = node.and_then(|node| node.get("args")).is_some_and(|args| {
                    let words: Vec<&str> = args.items().iter().filter_map(|item| item.text()).collect();
                    words.get(2).copied() == url
                });
                if !named {
                    let words = format!("{:?} leads to another server already", CONNECTED);
                    let next =
                        format!("take it back first: durable-mcp uninstall {} --server {CONNECTED}", client.name());
                    return Err(Failure::new(Exit::Conflict, words).next(next));
                }
                let mut planner = self.planner()?;
                planner.install(&target, &[found], self.record(&target))
            }
            Some(_) => {
                let words = format!("{} has another server of the name {CONNECTED:?}", client.title());
                return Err(Failure::new(Exit::Conflict, words).next("rename it first"));
            }
            None => planner.connect(&target, url, self.record(&target)),
        };
        self.carry_out(&target, plan.map_err(|why| broken(&target, &why))?)?;
        Ok(Exit::Ok)
    }

    /// Shows a plan, asks, and does it.
    fn carry_out(&self, target: &Target, mut plan: Plan) -> Result<(), Failure> {
        let before = target.original.bytes.is_some().then_some(&target.document);
        let path = target.place.path.display().to_string();
        if let Some(next) = &plan.next {
            let after = (!plan.delete).then_some(next);
            eprint!("{}", diff::unified(&printable(&path), before, after));
        }
        for row in &plan.rows {
            tell(row, self.flags.dry_run);
        }
        if plan.next.is_some() && target.place.scope == Scope::Project {
            eprintln!("note: {path} may be shared with others, who would get the paths of this machine");
        }
        if let Some(next) = plan.next.take().filter(|_| !self.flags.dry_run) {
            if !self.permitted()? {
                eprintln!("nothing was changed");
                return Ok(());
            }
            self.write(target, &next, &mut plan)?;
            eprintln!("to see the change, {}", self.flags.client.restart());
        }
        if self.flags.json {
            for row in &plan.rows {
                let line =
                    serde_json::to_string(row).map_err(|error| Failure::new(Exit::Failure, error.to_string()))?;
                self.out.line(&line)?;
            }
        }
        Ok(())
    }

    fn permitted(&self) -> Result<bool, Failure> {
        if self.flags.yes || !io::stdin().is_terminal() {
            return Ok(true);
        }
        eprint!("change the file? [y/N] ");
        let _ = io::stderr().flush();
        let mut answer = String::new();
        io::stdin()
            .lock()
            .read_line(&mut answer)
            .map_err(|error| Failure::new(Exit::Failure, format!("stdin can not be read: {error}")))?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    fn write(&self, target: &Target, next: &Document, plan: &mut Plan) -> Result<(), Failure> {
        let record = &mut plan.record;
        let (now, next) = (target.original.bytes.as_deref().unwrap_or_default(), next.bytes());
        let before = self.records.read(&record.file);
        // What our own last change made can be made again; anything else is worth a copy.
        let ours = record.written == record::digest(now);
        if !ours && let Some(copy) = target.original.back_up()? {
            eprintln!("a copy of the file is at {}", copy.display());
            record.backups.push(copy);
        }
        record.written = record::digest(&next);
        let unrecorded = |error: io::Error| {
            Failure::new(Exit::Failure, format!("the record for `uninstall` can not be written: {error}"))
                .next("nothing was changed; set DURABLE_MCP_DATA_DIR to a folder that can be written")
        };
        // First the record: a change without one could not be taken back exactly.
        let mut both = record.clone();
        let known = before.iter().flat_map(|before| &before.changes);
        both.changes.extend(known.filter(|change| record.change(&change.at).is_none()).cloned());
        self.records.write(&both).map_err(unrecorded)?;
        let replaced = match plan.delete {
            true => target.original.remove(),
            false => target.original.replace(&next),
        };
        if let Err(failure) = replaced {
            let _ = self.records.write(&before.unwrap_or(Record { changes: Vec::new(), ..record.clone() }));
            return Err(failure);
        }
        if record.changes.is_empty() {
            // A copy that equals the file has nothing to add to it.
            record.backups.retain(|copy| {
                let same = std::fs::read(copy).is_ok_and(|bytes| bytes == next);
                !(same && std::fs::remove_file(copy).is_ok())
            });
        }
        self.records.write(record).map_err(unrecorded)
    }
}

/// Says what becomes of an entry.
fn tell(row: &Row, dry_run: bool) {
    let what = match (row.action, dry_run) {
        (Action::Wrapped, _) => {
            format!("is put behind durable-mcp; its calls are kept as {:?}", row.store.as_deref().unwrap_or_default())
        }
        (Action::Updated, _) => "names this program where it is now".to_owned(),
        (Action::Unchanged, _) => "is behind durable-mcp already".to_owned(),
        (Action::Refused, _) => "is left alone".to_owned(),
        (Action::Added, _) => "is added".to_owned(),
        (Action::Restored, _) => "is as it was before".to_owned(),
        (Action::Removed, _) => "is taken out".to_owned(),
    };
    let of = row.project.as_deref().map_or(String::new(), |project| format!(" (in {})", printable(project)));
    let note = row.note.as_deref().map_or(String::new(), |note| format!(": {}", printable(note)));
    eprintln!("{}{of} {what}{note}", printable(&row.server));
}
