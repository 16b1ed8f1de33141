//! What became of each call, and what would have become of it: every call is carried through the same pure rules as in
//! `wrap` (submission, transitions, policy). Sees calls, not bytes; bounded in what it remembers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::report::{End, Finding, Tally, ToolReport};
use crate::engine::catalog::Tool;
use crate::mcp::session::Flight;
use crate::model::decide::{Command, Failure, FailureKind, LeaseRequest, Limits as Notes, decide};
use crate::model::event::{Digest, Event, Order};
use crate::model::execution::{ErrorInfo, Head, Identification};
use crate::model::id::{ExecutionId, ProcessId};
use crate::model::policy::OnDisconnect;
use crate::model::principal::{ANONYMOUS, DEFAULT_NAMESPACE};
use crate::model::submit::{Found, IfWaited, Submission, Submitted, Twin, submit};

/// Tools that are counted by themselves.
const TOOLS_MAX: usize = 1_000;
/// Where calls of further tools are counted.
const OTHER_TOOLS: &str = "(other tools)";
/// A lease that nobody lets run out.
const LEASE_MS: i64 = 365 * 86_400_000;

/// Bounds.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Calls that are remembered; whoever reports calls bounds those in flight.
    pub calls: usize,
    /// Observations that are told one by one.
    pub findings: usize,
    /// How long a caller that is just leaving is waited for, in milliseconds.
    pub departure_grace_ms: i64,
}

/// A call as the client sent it.
pub struct Called {
    /// The JSON-RPC id, canonical.
    pub id: String,
    /// Its tool, with what the operator said about it.
    pub tool: Arc<Tool>,
    /// Its entry among the requests in flight.
    pub flight: Arc<Flight>,
    /// What tells its caller from another.
    pub caller: String,
    /// Its own wait budget, in milliseconds.
    pub wait_ms: Option<i64>,
    /// Key and hash of the arguments; `None`: it would have been refused.
    pub identity: Option<(Option<String>, String)>,
}

/// How a call was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    Result { is_error: bool },
    RpcError,
}

/// A request that has no answer yet.
struct Request {
    id: String,
    tool: String,
    flight: Arc<Flight>,
    at_ms: i64,
    wait_ms: i64,
    on_disconnect: OnDisconnect,
    /// The execution that takes it.
    execution: Option<u64>,
    /// It is the one that would have run.
    runs: bool,
    /// The equal call that was waited for when this one came.
    apart_from: Option<u64>,
    withdrawn: bool,
}

/// What happened to the calls of one conversation.
pub struct Ledger {
    limits: Limits,
    process: ProcessId,
    started_at_ms: i64,
    number: u64,
    executions: HashMap<u64, Head>,
    /// Oldest first.
    order: VecDeque<u64>,
    keys: HashMap<(String, String), u64>,
    twins: HashMap<(String, String, String), Vec<u64>>,
    requests: Vec<Request>,
    tools: BTreeMap<String, ToolReport>,
    total: Tally,
    findings: Vec<Finding>,
    pub findings_missed: u64,
    pub forgotten: u64,
}

impl Ledger {
    pub fn new(limits: Limits, now_ms: i64) -> Ledger {
        Ledger {
            limits,
            process: ProcessId::new(now_ms, &[0; 10]),
            started_at_ms: now_ms,
            number: 0,
            executions: HashMap::new(),
            order: VecDeque::new(),
            keys: HashMap::new(),
            twins: HashMap::new(),
            requests: Vec::new(),
            tools: BTreeMap::new(),
            total: Tally::default(),
            findings: Vec::new(),
            findings_missed: 0,
            forgotten: 0,
        }
    }

    /// Takes a call in.
    pub fn called(&mut self, called: Called, now_ms: i64) {
        let name = called.tool.name.clone();
        self.describe(&called.tool);
        self.count(&name, |tally| tally.calls += 1);
        let wait_ms = called.wait_ms.unwrap_or(called.tool.service.wait_ms);
        let mut request = Request {
            id: called.id.clone(),
            tool: name.clone(),
            flight: called.flight.clone(),
            at_ms: now_ms,
            wait_ms,
            on_disconnect: called.tool.service.on_disconnect,
            execution: None,
            runs: false,
            apart_from: None,
            withdrawn: false,
        };
        match &called.identity {
            None => self.note("refused", &name, (now_ms, 0), |tally| &mut tally.refused),
            Some((key, hash)) => self.submit(&called, (key.clone(), hash.clone()), &mut request),
        }
        if wait_ms == 0 && request.execution.is_some() {
            self.count(&name, |tally| tally.accepted += 1);
        }
        self.requests.push(request);
        self.forget();
    }

    fn submit(&mut self, called: &Called, (key, hash): (Option<String>, String), request: &mut Request) {
        let (tool, now_ms) = (&called.tool, request.at_ms);
        self.number += 1;
        let mut entropy = [0; 10];
        entropy[2..].copy_from_slice(&self.number.to_be_bytes());
        let id = ExecutionId::new(now_ms, &entropy);
        let mut submission = Submission {
            ident: Identification {
                id,
                namespace: DEFAULT_NAMESPACE.into(),
                upstream: tool.upstream.clone(),
                tool: tool.name.clone(),
                key: key.clone(),
                principal: ANONYMOUS.into(),
                caller: called.caller.clone(),
                arguments_hash: hash.clone(),
                policy: tool.policy.clone(),
                effect_key: id,
                retry_of: None,
                bound_to: None,
                start_by_ms: None,
            },
            identity: tool.identity,
            run_at_ms: None,
            by: None,
            lease: Some(LeaseRequest {
                worker: "shadow".into(),
                process: self.process,
                ttl_ms: LEASE_MS,
                takes_over: None,
            }),
            waiter: Some(self.process),
            if_waited: IfWaited::Tell,
        };
        let key_of = key.map(|key| (tool.name.clone(), key));
        let twin_of = (tool.name.clone(), hash, called.caller.clone());
        let holder = key_of.as_ref().and_then(|key| self.keys.get(key)).copied();
        let twins: Vec<u64> = match key_of {
            None => self.twins.get(&twin_of).cloned().unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        let decided = self.decide(&submission, (holder, &twins), now_ms);
        let name = &tool.name;
        let since =
            |ledger: &Ledger, number: u64| ledger.executions.get(&number).map_or(0, |head| now_ms - head.created_at_ms);
        match decided {
            Submitted::Joined => {
                request.execution = holder;
                let after_ms = holder.map_or(0, |number| since(self, number));
                self.note("deduplicated_by_key", name, (now_ms, after_ms), |tally| &mut tally.deduplicated_by_key);
            }
            Submitted::Attached(index) => {
                let number = twins[index];
                request.execution = Some(number);
                let after_ms = since(self, number);
                self.note("deduplicated_unkeyed", name, (now_ms, after_ms), |tally| &mut tally.deduplicated_unkeyed);
                self.deliver(number, now_ms);
            }
            Submitted::Conflict { .. } => {
                let after_ms = holder.map_or(0, |number| since(self, number));
                self.note("conflicts", name, (now_ms, after_ms), |tally| &mut tally.conflicts);
            }
            Submitted::Waited(index) => {
                let number = twins[index];
                request.apart_from = Some(number);
                let after_ms = since(self, number);
                self.note("kept_apart", name, (now_ms, after_ms), |tally| &mut tally.kept_apart);
                submission.if_waited = IfWaited::New;
                if let Submitted::New { events, lease_expires_at_ms } =
                    self.decide(&submission, (holder, &twins), now_ms)
                {
                    self.start(submission, (events, lease_expires_at_ms), (key_of, twin_of), request);
                }
            }
            Submitted::New { events, lease_expires_at_ms } => {
                self.start(submission, (events, lease_expires_at_ms), (key_of, twin_of), request);
            }
        }
    }

    fn decide(&self, submission: &Submission, (holder, twins): (Option<u64>, &[u64]), now_ms: i64) -> Submitted {
        let twins: Vec<Twin<'_>> = twins
            .iter()
            .filter_map(|number| Some(Twin { head: self.executions.get(number)?, waited: self.is_waited(*number) }))
            .collect();
        let found = Found { holder: holder.and_then(|number| self.executions.get(&number)), twins: &twins };
        submit(submission, found, now_ms, &Notes::default())
    }

    fn start(
        &mut self,
        submission: Submission,
        (events, lease_expires_at_ms): (Vec<Event>, Option<i64>),
        (key_of, twin_of): (Option<(String, String)>, (String, String, String)),
        request: &mut Request,
    ) {
        let now_ms = request.at_ms;
        let mut head = Head::new(submission.ident, now_ms);
        events.iter().for_each(|event| head.apply(event, now_ms));
        if let (Some(lease), Some(expires_at_ms)) = (&mut head.lease, lease_expires_at_ms) {
            lease.expires_at_ms = expires_at_ms;
        }
        let number = self.number;
        match key_of {
            Some(key) => drop(self.keys.insert(key, number)),
            None => self.twins.entry(twin_of).or_default().push(number),
        }
        self.executions.insert(number, head);
        self.order.push_back(number);
        (request.execution, request.runs) = (Some(number), true);
    }

    /// The client took requests back: the flights say which.
    pub fn withdrawn(&mut self, now_ms: i64) {
        for at in 0..self.requests.len() {
            let request = &self.requests[at];
            if request.withdrawn || !request.flight.withdrawn.is_cancelled() {
                continue;
            }
            let (timed_out, execution) = (request.flight.timed_out(), request.execution);
            let follows = request.on_disconnect == OnDisconnect::Cancel;
            self.requests[at].withdrawn = true;
            let Some(number) = execution else { continue };
            let stops = !timed_out || (follows && !self.is_waited(number));
            if stops && self.act(number, &Command::Cancel(order()), now_ms).is_some() {
                let tool = self.requests[at].tool.clone();
                let after_ms = now_ms - self.requests[at].at_ms;
                self.note("cancelled", &tool, (now_ms, after_ms), |tally| &mut tally.cancelled);
            }
            if !timed_out && let Some(head) = self.executions.get_mut(&number) {
                head.delivered_at_ms = Some(now_ms);
            }
            self.join_the_departed(number, now_ms);
        }
    }

    /// A call that came just before its first caller left takes that caller's place, as the submission would have had it.
    fn join_the_departed(&mut self, number: u64, now_ms: i64) {
        let grace_ms = self.limits.departure_grace_ms;
        let settled = self.executions.get(&number).is_none_or(|head| head.state.is_settled());
        if settled || self.is_waited(number) {
            return;
        }
        let joins = |request: &&mut Request| {
            request.apart_from == Some(number) && request.runs && now_ms - request.at_ms <= grace_ms
        };
        let Some(request) = self.requests.iter_mut().find(joins) else { return };
        let own = request.execution.replace(number);
        (request.runs, request.apart_from) = (false, None);
        let (tool, after_ms) = (request.tool.clone(), 0);
        if let Some(own) = own {
            self.drop_execution(own);
        }
        self.count(&tool, |tally| tally.kept_apart = tally.kept_apart.saturating_sub(1));
        self.note("deduplicated_unkeyed", &tool, (now_ms, after_ms), |tally| &mut tally.deduplicated_unkeyed);
    }

    /// The server answered a request; false when none has this id.
    pub fn answered(&mut self, id: &str, answer: Answered, now_ms: i64) -> bool {
        let Some(at) = self.requests.iter().position(|request| request.id == id) else { return false };
        let request = self.requests.remove(at);
        let (tool, took_ms) = (request.tool.clone(), now_ms - request.at_ms);
        self.count(&tool, |tally| {
            tally.answered += 1;
            tally.tool_errors += u64::from(answer == Answered::Result { is_error: true });
            tally.rpc_errors += u64::from(answer == Answered::RpcError);
            tally.longest_ms = tally.longest_ms.max(took_ms);
        });
        self.spend(&request, now_ms);
        if request.withdrawn {
            self.note("late_results", &tool, (now_ms, took_ms), |tally| &mut tally.late_results);
        }
        let Some(number) = request.execution.filter(|_| request.runs) else { return true };
        let command = match answer {
            // What the result is decides nothing.
            Answered::Result { is_error } => Command::Complete { fencing_token: 1, result: Digest::of(""), is_error },
            Answered::RpcError => fail(FailureKind::RpcError, "rpc_error"),
        };
        if let Some(Event::Retried { .. }) = self.act(number, &command, now_ms) {
            self.note("retried", &tool, (now_ms, took_ms), |tally| &mut tally.retried);
        }
        if !request.withdrawn || self.is_waited(number) {
            self.deliver(number, now_ms);
        }
        true
    }

    /// Nothing more comes: what has no answer will not get one.
    pub fn ended(&mut self, end: End, now_ms: i64) {
        for request in std::mem::take(&mut self.requests) {
            let (tool, took_ms) = (request.tool.clone(), now_ms - request.at_ms);
            self.count(&tool, |tally| tally.unanswered += 1);
            self.spend(&request, now_ms);
            let Some(number) = request.execution.filter(|_| request.runs) else { continue };
            if end == End::ClientLeft {
                if self.executions.get(&number).is_some_and(|head| !head.state.is_settled()) {
                    self.note("finished_later", &tool, (now_ms, took_ms), |tally| &mut tally.finished_later);
                }
                continue;
            }
            match self.act(number, &fail(FailureKind::Lost, "child_died"), now_ms) {
                Some(Event::Retried { .. }) => {
                    self.note("retried", &tool, (now_ms, took_ms), |tally| &mut tally.retried);
                }
                Some(Event::Lost { .. }) => {
                    self.note("unknown", &tool, (now_ms, took_ms), |tally| &mut tally.unknown);
                }
                Some(Event::Failed { .. }) => {
                    self.note("failed", &tool, (now_ms, took_ms), |tally| &mut tally.failed);
                }
                _ => {}
            }
        }
    }

    /// A tool was listed: what is known of it now holds for what is under way, since `wrap` would have known it before.
    pub fn learned(&mut self, tool: &Tool) {
        for head in self.executions.values_mut().filter(|head| head.ident.tool == tool.name) {
            if !head.state.is_settled() {
                head.ident.policy = tool.policy.clone();
            }
        }
        if let Some(known) = self.tools.get_mut(&tool.name) {
            known.delivery = tool.policy.delivery.as_str();
            known.delivery_source = tool.policy.delivery_source.as_str();
        }
    }

    /// Calls without an answer so far.
    pub fn unanswered(&self) -> u64 {
        self.requests.len() as u64
    }

    /// What was counted: together, by tool, and one by one.
    pub fn counted(&self) -> (Tally, BTreeMap<String, ToolReport>, Vec<Finding>) {
        (self.total.clone(), self.tools.clone(), self.findings.clone())
    }

    /// Lets an execution take a command by the rules; the first event of it, if it changes anything.
    fn act(&mut self, number: u64, command: &Command, now_ms: i64) -> Option<Event> {
        let head = self.executions.get_mut(&number)?;
        let events = decide(head, command, now_ms, &Notes::default()).events;
        events.iter().for_each(|event| head.apply(event, now_ms));
        events.into_iter().next().filter(|event| !matches!(event, Event::Rejected { .. }))
    }

    /// Somebody has, or got at once, the answer about the end.
    fn deliver(&mut self, number: u64, now_ms: i64) {
        if let Some(head) = self.executions.get_mut(&number).filter(|head| head.state.is_settled()) {
            head.delivered_at_ms = Some(now_ms);
        }
    }

    /// A caller that waits longer than its budget would have got a handle.
    fn spend(&mut self, request: &Request, now_ms: i64) {
        let waited_ms = now_ms - request.at_ms;
        if request.wait_ms > 0 && waited_ms > request.wait_ms && !request.withdrawn && request.execution.is_some() {
            self.note("handles", &request.tool, (now_ms, waited_ms), |tally| &mut tally.handles);
            if let Some(head) = request.execution.and_then(|number| self.executions.get_mut(&number)) {
                head.handle_given = true;
            }
        }
    }

    fn is_waited(&self, number: u64) -> bool {
        self.requests.iter().any(|request| request.execution == Some(number) && !request.withdrawn)
    }

    /// Keeps memory bounded: the oldest goes, one that has ended before one that has not.
    fn forget(&mut self) {
        while self.executions.len() > self.limits.calls {
            let settled = |number: &u64| self.executions.get(number).is_none_or(|head| head.state.is_settled());
            let Some(number) = self.order.iter().find(|number| settled(number)).or(self.order.front()).copied() else {
                return;
            };
            self.drop_execution(number);
            self.forgotten += 1;
        }
    }

    fn drop_execution(&mut self, number: u64) {
        self.order.retain(|known| *known != number);
        let Some(head) = self.executions.remove(&number) else { return };
        let ident = head.ident;
        match ident.key {
            Some(key) => {
                let key = (ident.tool, key);
                if self.keys.get(&key) == Some(&number) {
                    self.keys.remove(&key);
                }
            }
            None => {
                let twin = (ident.tool, ident.arguments_hash, ident.caller);
                if let Some(twins) = self.twins.get_mut(&twin) {
                    twins.retain(|known| *known != number);
                    if twins.is_empty() {
                        self.twins.remove(&twin);
                    }
                }
            }
        }
    }

    fn describe(&mut self, tool: &Tool) {
        if self.tools.len() < TOOLS_MAX || self.tools.contains_key(&tool.name) {
            let policy = &tool.policy;
            let report = self.tools.entry(tool.name.clone()).or_insert_with(|| ToolReport {
                delivery: policy.delivery.as_str(),
                delivery_source: policy.delivery_source.as_str(),
                tally: Tally::default(),
            });
            (report.delivery, report.delivery_source) = (policy.delivery.as_str(), policy.delivery_source.as_str());
        }
    }

    fn count(&mut self, tool: &str, count: impl Fn(&mut Tally)) {
        count(&mut self.total);
        let name = if self.tools.contains_key(tool) { tool } else { OTHER_TOOLS };
        let other = || ToolReport { delivery: "", delivery_source: "", tally: Tally::default() };
        count(&mut self.tools.entry(name.to_owned()).or_insert_with(other).tally);
    }

    fn note(&mut self, kind: &'static str, tool: &str, (now_ms, after_ms): (i64, i64), of: fn(&mut Tally) -> &mut u64) {
        self.count(tool, |tally| *of(tally) += 1);
        if self.findings.len() >= self.limits.findings {
            self.findings_missed += 1;
            return;
        }
        let at_ms = now_ms - self.started_at_ms;
        self.findings.push(Finding { kind, tool: tool.to_owned(), at_ms, after_ms });
    }
}

fn order() -> Order {
    Order { principal: ANONYMOUS.into(), reason: "cancelled by the client".into() }
}

fn fail(kind: FailureKind, code: &str) -> Command {
    let error = ErrorInfo { code: code.into(), message: String::new() };
    Command::Fail { fencing_token: 1, failure: Failure { kind, error, retry_after_ms: None } }
}
