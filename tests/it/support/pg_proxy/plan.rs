//! Which faults come when: chosen ones, random ones from a seed, and ambiguous commits of each kind of transaction in
//! turn. Decides for each unit of a connection (the messages up to a `Sync`, or one simple query); moves no bytes.

use std::collections::BTreeMap;

use super::statements::{Does, shape};

/// What goes wrong at a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The statement fails with this SQLSTATE; at a COMMIT nothing is committed.
    Error(&'static str),
    /// It is done, and answered with this SQLSTATE all the same.
    DoneAndError(&'static str),
    /// It is done; instead of its answer the connection is cut.
    DoneAndCut,
    /// It is done; neither its answer nor anything after comes, and the connection stays open.
    DoneAndSilent,
    /// It never arrives, and the connection is cut.
    Cut,
}

/// Where a fault comes.
#[derive(Clone, Debug)]
pub enum Spot {
    /// At the next unit that commits something: a COMMIT after writes, or a write outside of a transaction.
    Commit,
    /// At the next unit that commits something of just this shape, such as `INSERT TASKS, UPDATE EXECUTIONS`.
    CommitOf(String),
    /// At the next unit with a statement that contains this text.
    Statement(&'static str),
}

/// Ways in which nobody can know whether a commit was done.
pub const AMBIGUOUS: [Fault; 4] = [Fault::DoneAndCut, Fault::Cut, Fault::DoneAndError("40003"), Fault::Error("40003")];

/// The faults of a proxy, and what came of them.
#[derive(Debug, Default)]
pub struct Plan {
    chosen: Vec<(Spot, Fault, usize)>,
    /// Of 100 transactions, so many fail with 40001 somewhere.
    serialization_percent: u64,
    /// Of the commits of one shape, every so-manieth is ambiguous; 0: none.
    ambiguous_every: u64,
    /// Commits of each shape that no other fault had struck.
    offered: BTreeMap<String, u64>,
    commits: BTreeMap<String, u64>,
    fired: BTreeMap<Fault, usize>,
}

impl Plan {
    pub fn choose(&mut self, spot: Spot, fault: Fault, times: usize) {
        self.chosen.push((spot, fault, times));
    }

    pub fn randomly(&mut self, serialization_percent: u64) {
        self.serialization_percent = serialization_percent;
    }

    pub fn ambiguously(&mut self, every: u64) {
        self.ambiguous_every = every;
    }

    /// No more faults.
    pub fn heal(&mut self) {
        self.chosen.clear();
        (self.serialization_percent, self.ambiguous_every) = (0, 0);
    }

    pub fn fired(&self, fault: Fault) -> usize {
        self.fired.get(&fault).copied().unwrap_or(0)
    }

    /// Commits that passed by shape, faults included.
    pub fn commits(&self) -> &BTreeMap<String, u64> {
        &self.commits
    }

    pub fn pending(&self) -> usize {
        self.chosen.iter().map(|(_, _, times)| times).sum()
    }
}

/// Where one connection is.
#[derive(Debug)]
pub struct Course {
    random: u64,
    /// What the open transaction has written.
    written: Vec<String>,
    in_transaction: bool,
    /// After so many more statements the transaction fails.
    fails_in: Option<u64>,
}

impl Course {
    pub fn new(seed: u64) -> Course {
        Course { random: seed | 1, written: Vec::new(), in_transaction: false, fails_in: None }
    }

    fn below(&mut self, limit: u64) -> u64 {
        // xorshift64*
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    /// What happens to a unit of these statements.
    pub fn unit(&mut self, statements: &[String], plan: &mut Plan) -> Option<Fault> {
        let does: Vec<Does> = statements.iter().map(|statement| Does::of(statement)).collect();
        let has = |what: Does| does.contains(&what);
        let writes = statements.iter().zip(&does).filter(|(_, does)| **does == Does::Write);
        self.written.extend(writes.map(|(statement, _)| statement.clone()));
        let begins = has(Does::Begin) || (!self.in_transaction && (has(Does::Write) || has(Does::Read)));
        if begins {
            let fails = self.below(100) < plan.serialization_percent;
            self.fails_in = fails.then(|| self.below(4));
        }
        let ends = has(Does::Commit) || has(Does::Rollback);
        let commits = has(Does::Commit) || (!self.in_transaction && !has(Does::Begin) && has(Does::Write));
        let committed = (commits && !self.written.is_empty()).then(|| shape(&self.written));
        let fault = self.fault(statements, &does, committed.as_deref(), plan);
        if let Some(shape) = committed {
            *plan.commits.entry(shape).or_default() += 1;
        }
        self.in_transaction = (self.in_transaction || has(Does::Begin)) && !ends;
        if !self.in_transaction {
            self.written.clear();
            self.fails_in = None;
        }
        if let Some(fault) = fault {
            *plan.fired.entry(fault).or_default() += 1;
        }
        fault
    }

    fn fault(&mut self, statements: &[String], does: &[Does], commits: Option<&str>, plan: &mut Plan) -> Option<Fault> {
        let applies = |spot: &Spot| match spot {
            Spot::Commit => commits.is_some(),
            Spot::CommitOf(shape) => commits == Some(shape),
            Spot::Statement(part) => statements.iter().any(|statement| statement.contains(part)),
        };
        if let Some(at) = plan.chosen.iter().position(|(spot, _, _)| applies(spot)) {
            let (_, fault, times) = &mut plan.chosen[at];
            let fault = *fault;
            *times -= 1;
            if *times == 0 {
                plan.chosen.remove(at);
            }
            return Some(fault);
        }
        let repeatable = does.iter().any(|does| matches!(does, Does::Read | Does::Write | Does::Commit));
        match self.fails_in {
            Some(0) if repeatable => {
                self.fails_in = None;
                return Some(Fault::Error("40001"));
            }
            // A transaction that ends sooner fails at its end.
            Some(_) if commits.is_some() => {
                self.fails_in = None;
                return Some(Fault::Error("40001"));
            }
            Some(left) if repeatable => self.fails_in = Some(left - 1),
            _ => {}
        }
        let shape = commits.filter(|_| plan.ambiguous_every > 0)?;
        let offered = plan.offered.entry(shape.to_owned()).or_default();
        let seen = std::mem::replace(offered, *offered + 1);
        // The first of its shape comes through ambiguous at once: rare paths are met too.
        seen.is_multiple_of(plan.ambiguous_every)
            .then(|| AMBIGUOUS[(seen / plan.ambiguous_every) as usize % AMBIGUOUS.len()])
    }
}
