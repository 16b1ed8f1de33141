//! What the cases share: ids from a seed, calls to submit, short ways to lease and complete, and the checks that hold
//! after everything. No case of its own.

use std::fmt;
use std::sync::Arc;

use super::Ground;
use crate::model::arguments;
use crate::model::decide::{Answer, Command, LeaseRequest};
use crate::model::event::{Digest, EventRecord};
use crate::model::execution::{Head, Identification};
use crate::model::id::{Entropy, ExecutionId, OperationId, ProcessId};
use crate::model::policy::{Delivery, Identity, Policy};
use crate::model::submit::{IfWaited, Submission};
use crate::store::verify::Audit;
use crate::store::{Applied, Apply, Error, PayloadKind, Store, Submit, SubmitOutcome};

/// Why a case does not hold.
#[derive(Debug)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(format!("{}: {error}", error.code()))
    }
}

/// What a case returns.
pub(super) type Verdict = Result<(), Failure>;

/// Fails the case unless the two are equal.
macro_rules! same {
    ($left:expr, $right:expr) => {
        match (&$left, &$right) {
            (left, right) if *left == *right => {}
            (left, right) => {
                return Err($crate::store::conformance::Failure(format!(
                    "{} (line {}) is {left:?}, not {right:?}",
                    stringify!($left),
                    line!()
                )));
            }
        }
    };
}

/// Fails the case unless the value has the form, and gives what the form binds.
macro_rules! form {
    ($value:expr, $pattern:pat => $bound:expr) => {
        match $value {
            $pattern => $bound,
            other => {
                return Err($crate::store::conformance::Failure(format!(
                    "{} (line {}) is {other:?}, not {}",
                    stringify!($value),
                    line!(),
                    stringify!($pattern)
                )));
            }
        }
    };
}

/// Fails the case unless the condition holds.
macro_rules! holds {
    ($condition:expr) => {
        if !$condition {
            return Err($crate::store::conformance::Failure(format!(
                "{} (line {}) does not hold",
                stringify!($condition),
                line!()
            )));
        }
    };
}

pub(super) use {form, holds, same};

/// Random numbers from a seed (xorshift64*).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(super) fn entropy(&mut self) -> Entropy {
        let (first, second) = (self.next().to_be_bytes(), self.next().to_be_bytes());
        let mut entropy = Entropy::default();
        entropy[..8].copy_from_slice(&first);
        entropy[8..].copy_from_slice(&second[..2]);
        entropy
    }
}

/// A store, a process that uses it, and a clock that moves when told.
pub struct Scene {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The process that submits and leases, announced.
    pub process: ProcessId,
    /// A namespace of the case's own.
    pub namespace: String,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    random: Random,
}

impl Scene {
    /// Opens the database for a case called `name`.
    pub async fn open(ground: &dyn Ground, name: &str) -> Result<Scene, Failure> {
        let salt = name.bytes().fold(ground.seed(), |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut random = Random::new(salt);
        let now_ms = 1_800_000_000_000;
        let process = ProcessId::new(now_ms, &random.entropy());
        let namespace = format!("case-{:016x}", random.next());
        let store = ground.open().await?;
        store.register_process(process, now_ms).await?;
        Ok(Scene { store, process, namespace, now_ms, random })
    }

    /// One more process on the same database.
    pub(crate) async fn another(&mut self, ground: &dyn Ground) -> Result<Scene, Failure> {
        let mut random = Random::new(self.random.next());
        let process = ProcessId::new(self.now_ms, &random.entropy());
        let store = ground.open().await?;
        store.register_process(process, self.now_ms).await?;
        Ok(Scene { store, process, namespace: self.namespace.clone(), now_ms: self.now_ms, random })
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub(crate) fn operation(&mut self) -> OperationId {
        OperationId::new(self.now_ms, &self.random.entropy())
    }

    pub(crate) fn execution_id(&mut self) -> ExecutionId {
        ExecutionId::new(self.now_ms, &self.random.entropy())
    }

    pub(crate) fn process_id(&mut self) -> ProcessId {
        ProcessId::new(self.now_ms, &self.random.entropy())
    }

    /// A call of the tool `echo`, `at_most_once`, unkeyed, whose caller waits; nothing takes it at once.
    pub(crate) fn call(&mut self, arguments: &str) -> Submit {
        let id = self.execution_id();
        let ident = Identification {
            id,
            namespace: self.namespace.clone(),
            upstream: "files".into(),
            tool: "echo".into(),
            key: None,
            principal: "ann".into(),
            caller: "editor".into(),
            arguments_hash: arguments::hash(arguments, None).unwrap_or_default(),
            policy: Policy::default(),
            effect_key: id,
            retry_of: None,
            bound_to: None,
            start_by_ms: None,
        };
        let submission = Submission {
            ident,
            identity: Identity::default(),
            run_at_ms: None,
            by: None,
            lease: None,
            waiter: Some(self.process),
            if_waited: IfWaited::New,
        };
        let operation = self.operation();
        Submit { submission, arguments: arguments.into(), meta: None, operation, now_ms: self.now_ms }
    }

    /// The same with a key.
    pub(crate) fn keyed(&mut self, key: &str, arguments: &str) -> Submit {
        let mut submit = self.call(arguments);
        submit.submission.ident.key = Some(key.into());
        submit
    }

    /// A call that may run several times.
    pub(crate) fn repeatable(&mut self, arguments: &str) -> Submit {
        let mut submit = self.call(arguments);
        submit.submission.ident.policy.delivery = Delivery::AtLeastOnce;
        submit
    }

    pub(crate) fn lease_request(&self) -> LeaseRequest {
        LeaseRequest { worker: "w1".into(), process: self.process, ttl_ms: 30_000, takes_over: None }
    }

    /// Submits; the call must be new.
    pub(crate) async fn new_execution(&self, submit: Submit) -> Result<Head, Failure> {
        match self.store.submit(submit).await? {
            SubmitOutcome::New(head) => Ok(*head),
            other => Err(Failure(format!("a submission that must be new became {other:?}"))),
        }
    }

    pub(crate) fn apply(&mut self, id: ExecutionId, command: Command) -> Apply {
        let operation = self.operation();
        Apply { id, command, payload: None, operation, now_ms: self.now_ms, seen: None }
    }

    /// Runs a command; the execution must exist.
    pub(crate) async fn run(&mut self, id: ExecutionId, command: Command) -> Result<Applied, Failure> {
        let apply = self.apply(id, command);
        self.run_apply(apply).await
    }

    pub(crate) async fn run_apply(&mut self, apply: Apply) -> Result<Applied, Failure> {
        let id = apply.id;
        self.store.apply(apply).await?.ok_or_else(|| Failure(format!("execution {id} is missing")))
    }

    /// Leases; the lease must be granted.
    pub(crate) async fn lease(&mut self, id: ExecutionId) -> Result<Head, Failure> {
        let request = self.lease_request();
        let applied = self.run(id, Command::Lease(request)).await?;
        match applied.answer {
            Answer::Leased { .. } => Ok(applied.head),
            other => Err(Failure(format!("a lease of {id} was answered with {other:?}"))),
        }
    }

    /// Completes under `fencing_token` with `result`.
    pub(crate) async fn complete(
        &mut self,
        id: ExecutionId,
        fencing_token: i64,
        result: &str,
    ) -> Result<Applied, Failure> {
        let command = Command::Complete { fencing_token, result: Digest::of(result), is_error: false };
        let mut apply = self.apply(id, command);
        apply.payload = Some((PayloadKind::Result, result.into()));
        self.run_apply(apply).await
    }

    /// Submits, leases and completes.
    pub(crate) async fn completed(&mut self, submit: Submit, result: &str) -> Result<Head, Failure> {
        let id = self.new_execution(submit).await?.id();
        let token = self.lease(id).await?.fencing_token;
        Ok(self.complete(id, token, result).await?.head)
    }

    pub(crate) async fn head(&self, id: ExecutionId) -> Result<Head, Failure> {
        let heads = self.store.heads(&[id]).await?;
        heads.into_iter().next().ok_or_else(|| Failure(format!("execution {id} is missing")))
    }

    pub(crate) async fn events(&self, id: ExecutionId) -> Result<Vec<EventRecord>, Failure> {
        Ok(self.store.events(id, 0, 10_000).await?)
    }

    pub(crate) async fn event_names(&self, id: ExecutionId) -> Result<Vec<&'static str>, Failure> {
        Ok(self.events(id).await?.iter().map(|record| record.event.name()).collect())
    }

    /// Everything that must hold of a stored execution (guarantees G4 to G6).
    pub(crate) async fn check_row(&self, id: ExecutionId) -> Verdict {
        let head = self.head(id).await?;
        let mut audit = Audit::of(&head);
        self.events(id).await?.iter().for_each(|record| audit.event(record));
        match audit.end().first() {
            None => Ok(()),
            Some(finding) => Err(Failure(format!("{}: execution {id}: {}", finding.rule.as_str(), finding.what))),
        }
    }
}
