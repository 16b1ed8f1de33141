//! Checks a whole database file: pages, schema, every execution against its events and payloads, keys, leftovers. Reads a
//! few hundred executions in each transaction, so that memory is bounded and a running process can tidy its log. The
//! rules about executions are `store::verify`'s; changes nothing.

use std::ops::ControlFlow;
use std::path::Path;

use refinery::{Runner, Target};
use rusqlite::{Connection, params};
use sha2::Digest as _;

use super::events;
use super::fault::{Fault, Sql};
use super::inspect;
use super::migrate;
use super::open::name_file;
use super::payloads;
use super::policies::Policies;
use super::rows;
use crate::model::event::Digest;
use crate::model::execution::Head;
use crate::model::id::ExecutionId;
use crate::store::verify::{Audit, Finding, Rule};
use crate::store::{PayloadKind, Result};

/// Executions read in one transaction.
const PAGE: usize = 256;
/// Events read at once.
const EVENTS: usize = 512;
/// Faults of the pages themselves that are told one by one.
const PAGE_FAULTS_MAX: u32 = 100;

/// What is told while a file is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Something does not hold.
    Found(Finding),
    /// So many executions of so many are checked.
    Progress {
        /// Checked.
        done: u64,
        /// All.
        total: u64,
    },
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Executions.
    pub executions: u64,
    /// Their events.
    pub events: u64,
    /// Their payloads.
    pub payloads: u64,
    /// Keys.
    pub keys: u64,
    /// Rules that do not hold.
    pub findings: u64,
}

/// Checks the file at `path` and tells each thing that does not hold; stops early when `tell` breaks. Blocks.
///
/// # Errors
///
/// As of [`inspect::status`]: a file that can not be looked at at all.
pub fn verify(path: &Path, tell: &mut dyn FnMut(Told) -> ControlFlow<()>) -> Result<Verified> {
    let connection = inspect::connect(path)?;
    let version = inspect::version(&connection, path)?;
    let policies = Policies::default();
    let mut checker = Checker { connection: &connection, policies: &policies, tell, verified: Verified::default() };
    match checker.run(version) {
        Ok(()) | Err(Stop::Told) => Ok(checker.verified),
        Err(Stop::Fault(fault)) => Err(name_file(path, fault.error)),
    }
}

/// Why a check ends early.
enum Stop {
    /// Whoever is told wants no more.
    Told,
    /// Nothing can be read.
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Stop {
        Stop::Fault(error.into())
    }
}

type Checked<T = ()> = std::result::Result<T, Stop>;

struct Checker<'a> {
    connection: &'a Connection,
    policies: &'a Policies,
    tell: &'a mut dyn FnMut(Told) -> ControlFlow<()>,
    verified: Verified,
}

impl Checker<'_> {
    fn run(&mut self, version: i64) -> Checked {
        self.pages()?;
        let done = self.schema(version);
        self.part("the schema", done)?;
        let done = self.policies();
        self.part("the policies", done)?;
        let done = self.executions();
        self.part("the executions", done)?;
        for table in of_executions(self.connection)? {
            let done = self.leftovers(&table);
            self.part(&table, done)?;
        }
        let done = self.keys();
        self.part("the keys", done)
    }

    fn found(&mut self, finding: Finding) -> Checked {
        self.verified.findings += 1;
        self.tell(Told::Found(finding))
    }

    fn tell(&mut self, told: Told) -> Checked {
        match (self.tell)(told) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Told),
        }
    }

    /// A part that can not be read is a finding; the other parts are still checked.
    fn part(&mut self, what: &str, done: Checked) -> Checked {
        match done {
            Err(Stop::Fault(fault)) => {
                self.found(Finding::of_file(Rule::Readable, format!("{what} can not be read: {}", fault.error)))
            }
            done => done,
        }
    }

    fn pages(&mut self) -> Checked {
        let verdicts = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection.prepare(&format!("PRAGMA integrity_check({PAGE_FAULTS_MAX})"))?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        let verdicts = match verdicts() {
            Ok(verdicts) => verdicts,
            Err(error) => vec![error.to_string()],
        };
        for verdict in verdicts.iter().filter(|verdict| *verdict != "ok") {
            for line in verdict.lines() {
                self.found(Finding::of_file(Rule::Integrity, line))?;
            }
        }
        Ok(())
    }

    /// Holds tables, indexes and triggers against those that the migrations make.
    fn schema(&mut self, version: i64) -> Checked {
        let wanted = schema_of(&migrated(version)?)?;
        let there = schema_of(self.connection)?;
        for (name, sql) in &wanted {
            match there.iter().find(|(other, _)| other == name) {
                None => self.found(Finding::of_file(Rule::Schema, format!("{name} is missing")))?,
                Some((_, other)) if other != sql => {
                    self.found(Finding::of_file(Rule::Schema, format!("{name} is not as this program makes it")))?;
                }
                Some(_) => {}
            }
        }
        for (name, _) in there.iter().filter(|(name, _)| !wanted.iter().any(|(ours, _)| ours == name)) {
            self.found(Finding::of_file(Rule::Schema, format!("{name} is not of this program")))?;
        }
        Ok(())
    }

    fn policies(&mut self) -> Checked {
        const SELECT: &str = "SELECT id, policy FROM policies";
        let mut statement = self.connection.prepare(SELECT)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, policy): (String, String) = (row.get(0)?, row.get(1)?);
            if crate::store::encoding::policy_id(&policy) != id {
                self.found(Finding::of_file(Rule::Payload, format!("policy {id} is not the text that was stored")))?;
            }
        }
        Ok(())
    }

    fn executions(&mut self) -> Checked {
        let total: i64 = self.connection.query_row("SELECT count(*) FROM executions", [], |row| row.get(0))?;
        // What is submitted from now on is left to the next check, so that a busy store has an end.
        let last: Option<String> = self.connection.query_row("SELECT max(id) FROM executions", [], |row| row.get(0))?;
        let Some(last) = last else { return Ok(()) };
        let mut after = String::new();
        loop {
            let snapshot = self.connection.unchecked_transaction()?;
            let ids = self.ids(&after, &last)?;
            for id in &ids {
                self.execution(id)?;
            }
            snapshot.finish()?;
            let Some(id) = ids.into_iter().next_back() else { return Ok(()) };
            after = id;
            let done = self.verified.executions;
            self.tell(Told::Progress { done, total: done.max(total as u64) })?;
        }
    }

    fn ids(&self, after: &str, last: &str) -> Sql<Vec<String>> {
        const SELECT: &str = "SELECT id FROM executions WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
        let mut statement = self.connection.prepare_cached(SELECT)?;
        let ids = statement.query_map(params![after, last, PAGE as i64], |row| row.get(0))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    fn execution(&mut self, id: &str) -> Checked {
        self.verified.executions += 1;
        match self.audit(id) {
            Ok(findings) => findings.into_iter().try_for_each(|finding| self.found(finding)),
            Err(fault) => self.found(Finding::of(id, Rule::Readable, fault.error.to_string())),
        }
    }

    fn audit(&mut self, text: &str) -> Sql<Vec<Finding>> {
        let id: ExecutionId = text.parse().map_err(|_| Fault::damaged("its id is no UUID"))?;
        let head = rows::by_id(self.connection, self.policies, id)?;
        let head = head.ok_or_else(|| Fault::damaged("its id is not spelt as this program does"))?;
        let mut audit = Audit::of(&head);
        let mut after = i64::MIN;
        loop {
            let page = events::after(self.connection, id, after, EVENTS)?;
            for record in &page {
                audit.event(record);
                after = record.seq;
                self.verified.events += 1;
            }
            if page.len() < EVENTS {
                break;
            }
        }
        let result = audit.result().cloned();
        let mut findings = audit.end();
        findings.extend(self.payload(&head, result)?);
        findings.extend(self.key_of(&head)?);
        Ok(findings)
    }

    /// The stored payloads are whole, and the result is the one that the events speak of.
    fn payload(&mut self, head: &Head, told: Option<Digest>) -> Sql<Vec<Finding>> {
        const KEPT: &str = "SELECT payloads_kept FROM executions WHERE id = ?1";
        let id = head.id();
        let kept: bool =
            self.connection.prepare_cached(KEPT)?.query_row([rows::IdText::execution(id)], |row| row.get(0))?;
        let mut findings = Vec::new();
        for kind in [PayloadKind::Arguments, PayloadKind::Meta, PayloadKind::Result, PayloadKind::Error] {
            let stored = match self.digest(id, kind) {
                Ok(stored) => stored,
                Err(fault) => {
                    findings.push(Finding::of(id, Rule::Payload, fault.error.to_string()));
                    continue;
                }
            };
            self.verified.payloads += u64::from(stored.is_some());
            let wanted = match kind {
                PayloadKind::Arguments => kept,
                PayloadKind::Result => kept && told.is_some(),
                PayloadKind::Meta | PayloadKind::Error => false,
            };
            let what = match (&stored, kind) {
                (None, _) if wanted => format!("its {} is missing", kind.as_str()),
                (Some(_), _) if !kept => format!("its {} is there, though retention took the payloads", kind.as_str()),
                (Some(_), PayloadKind::Result) if stored != told => {
                    "its result is not the one that its events speak of".into()
                }
                _ => continue,
            };
            findings.push(Finding::of(id, Rule::Payload, what));
        }
        Ok(findings)
    }

    /// The digest of a stored payload, piece by piece.
    fn digest(&self, id: ExecutionId, kind: PayloadKind) -> Sql<Option<Digest>> {
        let (mut hash, mut bytes, mut pieces) = (sha2::Sha256::new(), 0, 0);
        payloads::each_piece(self.connection, id, kind, |_, piece| {
            hash.update(piece.as_bytes());
            bytes += piece.len() as u64;
            pieces += 1;
            Ok(())
        })?;
        Ok((pieces > 0).then(|| Digest { sha256: hex::encode(hash.finalize()), bytes }))
    }

    /// A key stands for its execution as long as that has not ended.
    fn key_of(&self, head: &Head) -> Sql<Option<Finding>> {
        const HOLDER: &str = "SELECT count(*) FROM idempotency_keys \
            WHERE namespace = ?1 AND upstream = ?2 AND tool = ?3 AND key = ?4 AND execution_id = ?5";
        let ident = &head.ident;
        let Some(key) = &ident.key else { return Ok(None) };
        if head.state.is_ended() {
            return Ok(None);
        }
        let id = rows::IdText::execution(ident.id);
        let values = params![ident.namespace, ident.upstream, ident.tool, key, id];
        let held: i64 = self.connection.prepare_cached(HOLDER)?.query_row(values, |row| row.get(0))?;
        let what = || Finding::of(ident.id, Rule::Key, "its key does not lead to it, though it has not ended");
        Ok((held == 0).then(what))
    }

    /// Rows of another table whose execution is gone.
    fn leftovers(&mut self, table: &str) -> Checked {
        // The next execution id after `?1`, and whether the execution is there.
        let next = format!(
            "SELECT id, EXISTS (SELECT 1 FROM executions e WHERE e.id = n.id) \
             FROM (SELECT min(execution_id) AS id FROM \"{table}\" WHERE execution_id > ?1) n"
        );
        let mut after = Some(String::new());
        while after.is_some() {
            let snapshot = self.connection.unchecked_transaction()?;
            let mut gone = Vec::new();
            for _ in 0..PAGE {
                let Some(at) = &after else { break };
                let found: (Option<String>, bool) =
                    self.connection.prepare_cached(&next)?.query_row([at], |row| Ok((row.get(0)?, row.get(1)?)))?;
                after = found.0;
                if let (Some(id), false) = (&after, found.1) {
                    gone.push(id.clone());
                }
            }
            snapshot.finish()?;
            for id in gone {
                let what = format!("it is gone, and {table} still has rows of it");
                self.found(Finding::of(id, Rule::Orphan, what))?;
            }
        }
        Ok(())
    }

    fn keys(&mut self) -> Checked {
        self.verified.keys = self
            .connection
            .query_row("SELECT count(*) FROM idempotency_keys", [], |row| row.get::<_, i64>(0))?
            .unsigned_abs();
        let mut statement = self.connection.prepare(ASTRAY)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, there): (String, bool) = (row.get(0)?, row.get(1)?);
            // The key itself may say more than a report should.
            let what = match there {
                true => "a key leads to it that it does not carry",
                false => "a key leads to it, and it is gone",
            };
            self.found(Finding::of(id, Rule::Key, what))?;
        }
        Ok(())
    }
}

/// Keys that lead to no execution, or to one that does not carry them.
const ASTRAY: &str = "SELECT k.execution_id, e.id IS NOT NULL FROM idempotency_keys k \
    LEFT JOIN executions e ON e.id = k.execution_id \
    WHERE e.id IS NULL OR e.namespace <> k.namespace OR e.upstream <> k.upstream OR e.tool <> k.tool \
    OR e.key IS NOT k.key";

/// The tables whose rows belong to executions, the keys apart.
fn of_executions(connection: &Connection) -> Sql<Vec<String>> {
    const SELECT: &str = "SELECT m.name FROM sqlite_schema m, pragma_table_info(m.name) c \
        WHERE m.type = 'table' AND c.name = 'execution_id' AND m.name <> 'idempotency_keys' ORDER BY 1";
    let mut statement = connection.prepare(SELECT)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

/// A database in memory with the schema of that version.
fn migrated(version: i64) -> Sql<Connection> {
    let mut connection = Connection::open_in_memory()?;
    let target = Target::Version(i32::try_from(version).unwrap_or(i32::MAX) as _);
    Runner::new(&migrate::migrations())
        .set_target(target)
        .run(&mut connection)
        .map_err(|error| Fault::internal(format!("the schema in memory: {error}")))?;
    Ok(connection)
}

/// Kind and name of everything in a schema, with its text. What SQLite makes by itself has none or a name of its own; the
/// history of the migrations has been read by now.
fn schema_of(connection: &Connection) -> Sql<Vec<(String, String)>> {
    const SELECT: &str = "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL \
        AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'refinery_schema_history' ORDER BY 1";
    let mut statement = connection.prepare(SELECT)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}
