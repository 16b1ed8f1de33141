//! What the crash tests share: the fixture behind `serve`, clients that survive the server's death and keep a ledger of
//! their own, and the judgement of a whole story: client's ledger, fixture's ledger and store against each other.
//! Kills nothing by itself.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use durable_mcp::model::event::Event;
use durable_mcp::model::execution::State;
use durable_mcp::model::policy::Delivery;
use durable_mcp::store::{self, PayloadKind, StoreSettings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::DEADLINE;
use crate::support::ledger::Ledger;
use crate::support::process::Process;
use crate::support::program::{Setup, server_table};
use crate::support::raw_http::{Request, Response};
use crate::support::servers::kit_stdio;
use crate::support::store_check::{Checked, Execution};

/// A lost call is settled at most so long after the restart.
pub const SETTLED_WITHIN_MS: i64 = 2_000;

/// Wall time, to be compared with the times of events.
pub fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// Lets time pass: until a random moment for a kill, while clients work, or before the store is looked at again.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// `serve` in front of the fixture over stdio; the ledger lies in the setup's folder. `head` is TOML before the
/// server's table, `tail` further lines of it.
pub fn kit_setup(head: &str, tail: &str) -> (Setup, Ledger) {
    let setup = Setup::new("");
    let ledger = Ledger::in_folder(setup.folder());
    let table = server_table("kit", &kit_stdio(&["--ledger", ledger.path()]), tail);
    let setup = setup.config(&format!("{head}\n{table}"));
    (setup, ledger)
}

/// Numbers that look random and are the same in every run (xorshift64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number in `low..high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + self.0 % (high - low)
    }
}

/// The address of a server that was just started; `None` when it died before it listened.
pub async fn listening(process: &mut Process) -> Option<String> {
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        let stderr = process.stderr();
        if let Some(line) = stderr.lines().find(|line| line.contains("listens on ")) {
            return line.split("listens on ").last().map(|url| url.trim().to_owned());
        }
        if !process.is_running() {
            return None;
        }
        assert!(tokio::time::Instant::now() < end, "it neither listens nor ends:\n{stderr}");
        pass(Duration::from_millis(3)).await;
    }
}

/// A call that a client wants done.
#[derive(Clone, Debug)]
pub struct Call {
    pub tool: &'static str,
    pub key: String,
    /// The name of the side effect in the fixture's ledger.
    pub text: String,
    pub arguments: Value,
}

impl Call {
    pub fn new(tool: &'static str, text: &str) -> Call {
        let arguments = match tool {
            "crash_idempotent" | "crash_after_write" => json!({"text": text, "once": true}),
            _ => json!({"text": text}),
        };
        Call { tool, key: format!("key-{text}"), text: text.to_owned(), arguments }
    }

    pub fn slow(tool: &'static str, text: &str, seconds: f64) -> Call {
        Call { arguments: json!({"text": text, "seconds": seconds}), ..Call::new(tool, text) }
    }

    /// The same; the tool goes on until this file is there.
    pub fn gate(mut self, file: &Path) -> Call {
        self.arguments["gate"] = json!(file);
        self
    }

    /// What the tool answers once it has run.
    fn expected(&self) -> String {
        let text = &self.text;
        match self.tool {
            "append" | "append_idempotent" => format!("appended {text}"),
            "slow" | "slow_idempotent" => format!("slept {text}"),
            _ => format!("survived {text}"),
        }
    }
}

/// An answer about an execution.
#[derive(Clone, Debug)]
pub struct Answer {
    pub id: String,
    pub state: String,
    pub attempt: u64,
    /// The result without our own members.
    pub result: Value,
}

impl Answer {
    pub fn text(&self) -> &str {
        self.result["content"][0]["text"].as_str().unwrap_or_default()
    }
}

/// What became of one request.
#[derive(Clone, Debug)]
pub enum Told {
    Answer(Answer),
    /// A JSON-RPC error: its code and message.
    Error(i64, String),
    /// No whole answer came.
    Cut,
}

impl Told {
    pub fn answer(self) -> Answer {
        match self {
            Told::Answer(answer) => answer,
            other => panic!("no answer about an execution: {other:?}"),
        }
    }
}

/// One call over a connection of its own, in revision 2026-07-28.
pub async fn call(url: &str, call: &Call) -> Told {
    call_with(url, call, json!({"durable-mcp/idempotencyKey": call.key})).await
}

pub async fn call_with(url: &str, call: &Call, meta: Value) -> Told {
    let params = json!({"name": call.tool, "arguments": call.arguments, "_meta": meta});
    told(url, Request::modern(url, json!(1), "tools/call", params)).await
}

/// One call over a connection of its own, in a session of revision 2025-11-25.
pub async fn call_in(url: &str, session: &str, call: &Call) -> Told {
    let meta = json!({"durable-mcp/idempotencyKey": call.key});
    let params = json!({"name": call.tool, "arguments": call.arguments, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    told(url, Request::legacy(url, Some(session), &message.to_string())).await
}

async fn told(url: &str, request: Request) -> Told {
    let request = request.header("Connection", "close");
    let Some(response) = exchange(url, &request).await else { return Told::Cut };
    // A stream whose client is asked to come back ends in order and without the answer.
    let has_answer = |message: &String| message.contains("\"result\":") || message.contains("\"error\":");
    if !response.messages().iter().any(has_answer) {
        return Told::Cut;
    }
    let answer = response.answer();
    if let Some(error) = answer.get("error") {
        return Told::Error(error["code"].as_i64().unwrap_or_default(), error.to_string());
    }
    let mut result = answer["result"].clone();
    let execution = result["_meta"]["durable-mcp/execution"].clone();
    let text = |name: &str| execution[name].as_str().unwrap_or_else(|| panic!("no {name}: {answer}")).to_owned();
    let (id, state) = (text("id"), text("state"));
    let attempt = execution["attempt"].as_u64().unwrap_or_default();
    let members = result.as_object_mut().expect("a result is an object");
    members.remove("_meta");
    members.remove("resultType");
    Told::Answer(Answer { id, state, attempt, result })
}

/// The whole answer, or `None` when the server was not there or died meanwhile.
async fn exchange(url: &str, request: &Request) -> Option<Response> {
    let authority = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let mut stream = TcpStream::connect(authority).await.ok()?;
    stream.write_all(&request.bytes()).await.ok()?;
    let mut bytes = Vec::new();
    let read = timeout(2 * DEADLINE, stream.read_to_end(&mut bytes)).await;
    read.unwrap_or_else(|_| panic!("no end of the answer:\n{}", String::from_utf8_lossy(&bytes))).ok()?;
    whole(&bytes)
}

/// Parses an answer that ended with its connection; `None` when a part is missing.
fn whole(bytes: &[u8]) -> Option<Response> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let pairs = lines.filter_map(|line| line.split_once(':'));
    let headers = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect();
    let mut response = Response { status, headers, body: Vec::new() };
    let rest = &bytes[end..];
    match response.header("content-length").map(str::parse::<usize>) {
        Some(length) if length.clone().is_ok_and(|length| rest.len() < length) => return None,
        Some(_) => response.body = rest.to_vec(),
        None => response.body = unchunked(rest)?,
    }
    Some(response)
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend(rest.get(line + 2..line + 2 + size)?);
        rest = rest.get(line + 4 + size..)?;
    }
}

/// What the clients of one story know: every call they made and every answer they got.
#[derive(Clone, Default)]
pub struct ClientLedger {
    inner: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    calls: HashMap<String, Call>,
    answers: Vec<(String, Answer)>,
    requests: usize,
    cuts: usize,
}

impl ClientLedger {
    /// Asks once and remembers the answer.
    pub async fn ask(&self, url: &str, wanted: &Call) -> Told {
        self.ask_in(url, None, wanted).await
    }

    /// As `ask`, in a session where one is given.
    pub async fn ask_in(&self, url: &str, session: Option<&str>, wanted: &Call) -> Told {
        self.inner.lock().unwrap().calls.insert(wanted.key.clone(), wanted.clone());
        let told = match session {
            Some(session) => call_in(url, session, wanted).await,
            None => call(url, wanted).await,
        };
        let mut known = self.inner.lock().unwrap();
        known.requests += 1;
        match &told {
            Told::Answer(answer) => known.answers.push((wanted.key.clone(), answer.clone())),
            Told::Cut => known.cuts += 1,
            Told::Error(..) => {}
        }
        told
    }

    /// Asks with the same key until there is an answer about the end.
    pub async fn insist(&self, url: &str, wanted: &Call) -> Answer {
        let end = tokio::time::Instant::now() + 4 * DEADLINE;
        loop {
            match self.ask(url, wanted).await {
                Told::Answer(answer) if is_settled(&answer.state) => return answer,
                Told::Answer(answer) => panic!("{wanted:?} is answered although it is {}", answer.state),
                // Overloaded, or the store can not take it now: nothing was started.
                Told::Error(-31429 | -31503, _) | Told::Cut => {}
                Told::Error(code, words) => panic!("{wanted:?}: {code} {words}"),
            }
            assert!(tokio::time::Instant::now() < end, "no answer for {wanted:?}");
            pass(Duration::from_millis(10)).await;
        }
    }

    pub fn calls(&self) -> Vec<Call> {
        self.inner.lock().unwrap().calls.values().cloned().collect()
    }

    /// Holds what the clients were told against the store and the fixture's ledger. The server must not run.
    pub async fn judge(&self, setup: &Setup, ledger: &Ledger) -> (Tally, Checked) {
        let checked = setup.check_store().await;
        let by_key: HashMap<&str, Vec<&Execution>> = checked.executions.iter().fold(HashMap::new(), |mut all, one| {
            all.entry(one.head.ident.key.as_deref().unwrap_or_default()).or_default().push(one);
            all
        });
        let store = store::open(&setup.store_url(), &StoreSettings::default()).await.unwrap();
        let (answers, calls, mut tally) = {
            let known = self.inner.lock().unwrap();
            let tally = Tally { requests: known.requests, cuts: known.cuts, ..Tally::default() };
            (known.answers.clone(), known.calls.clone(), tally)
        };
        for (key, answer) in &answers {
            let held = by_key.get(key.as_str()).unwrap_or_else(|| panic!("{key} was answered and is not stored"));
            assert_eq!(held.len(), 1, "one execution for {key}");
            let head = &held[0].head;
            assert_eq!(head.id().to_string(), answer.id, "{key} belongs to another execution now");
            let late = answer.state == "unknown" && head.state == State::Completed;
            // A server that ends hands over what still runs: whoever was told so was told nothing about the end.
            let handed_over = matches!(answer.state.as_str(), "ready" | "leased" | "scheduled" | "waiting");
            let true_then = late || handed_over || head.state.as_str() == answer.state;
            assert!(true_then, "{key}: told {}, stored {head:?}", answer.state);
        }
        for (key, answer) in answers.iter().filter(|(_, answer)| answer.state == "completed") {
            assert_eq!(answer.text(), calls[key].expected(), "{key}");
            let id = answer.id.parse().unwrap();
            let payload = store.payload(id, PayloadKind::Result).await.unwrap().expect("a completed call has a result");
            assert_eq!(serde_json::from_str::<Value>(&payload).unwrap(), answer.result, "{key}");
        }
        store.close().await;
        let starts = ledger.all_starts().into_iter().fold(HashMap::<String, Vec<_>>::new(), |mut all, start| {
            all.entry(start.text.clone()).or_default().push(start);
            all
        });
        for wanted in calls.values() {
            let started = starts.get(&wanted.text).map_or(&[][..], Vec::as_slice);
            let Some(held) = by_key.get(wanted.key.as_str()) else {
                assert!(started.is_empty(), "{wanted:?} ran and is not stored");
                continue;
            };
            assert_eq!(held.len(), 1, "one execution for {}", wanted.key);
            judge_one(held[0], wanted, started, &mut tally);
        }
        (tally, checked)
    }
}

/// The runs of one call against what is stored about it.
fn judge_one(held: &Execution, wanted: &Call, started: &[crate::support::ledger::Start], tally: &mut Tally) {
    let head = &held.head;
    let told = || format!("{wanted:?}\n{started:#?}\n{head:#?}\n{:#?}", held.events);
    let most = match head.ident.policy.delivery {
        Delivery::AtMostOnce => 1,
        Delivery::AtLeastOnce => head.ident.policy.retry.max_attempts as usize,
    };
    assert!(started.len() <= most, "started {} times:\n{}", started.len(), told());
    let tokens: Vec<String> = held
        .events
        .iter()
        .filter_map(|record| match &record.event {
            Event::Leased { fencing_token, .. } => Some(fencing_token.to_string()),
            _ => None,
        })
        .collect();
    for start in started {
        assert_eq!(start.key.as_deref(), Some(head.ident.effect_key.to_string().as_str()), "{}", told());
        assert!(start.token.as_ref().is_some_and(|token| tokens.contains(token)), "a run nobody leased:\n{}", told());
    }
    let mut of_tokens: Vec<_> = started.iter().filter_map(|start| start.token.as_deref()).collect();
    of_tokens.sort_unstable();
    of_tokens.dedup();
    assert_eq!(of_tokens.len(), started.len(), "one lease ran twice:\n{}", told());
    assert!(head.state.is_settled(), "nobody settled it:\n{}", told());
    match head.state {
        State::Completed => assert!(!started.is_empty(), "a result without a run:\n{}", told()),
        State::Failed => assert_eq!(head.ident.policy.delivery, Delivery::AtLeastOnce, "{}", told()),
        _ => {}
    }
    tally.calls += 1;
    *tally.states.entry(head.state.as_str()).or_default() += 1;
}

pub fn is_settled(state: &str) -> bool {
    ["completed", "failed", "cancelled", "unknown"].contains(&state)
}

/// The figures of a story.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub kills: usize,
    pub requests: usize,
    /// Requests without a whole answer.
    pub cuts: usize,
    pub calls: usize,
    pub states: BTreeMap<&'static str, usize>,
    /// From the restart to the event that settles a lost call.
    pub settle_ms: Vec<i64>,
}

impl Tally {
    pub fn of(&self, state: &str) -> usize {
        self.states.get(state).copied().unwrap_or_default()
    }

    pub fn add(&mut self, other: Tally) {
        self.kills += other.kills;
        self.requests += other.requests;
        self.cuts += other.cuts;
        self.calls += other.calls;
        for (state, count) in other.states {
            *self.states.entry(state).or_default() += count;
        }
        self.settle_ms.extend(other.settle_ms);
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { kills, requests, cuts, calls, states, settle_ms } = self;
        let mut sorted = settle_ms.clone();
        sorted.sort_unstable();
        let at = |part: usize| sorted.get(sorted.len() * part / 100).copied().unwrap_or_default();
        write!(
            f,
            "{kills} kills, {requests} requests ({cuts} cut), {calls} calls {states:?}, {} settled after a restart: \
             p50 {} ms, p99 {} ms, max {} ms",
            sorted.len(),
            at(50),
            at(99),
            sorted.last().copied().unwrap_or_default(),
        )
    }
}

/// The lives of a server on one store: from the moment it was started to its death.
#[derive(Default)]
pub struct Lives(Vec<(i64, i64)>);

impl Lives {
    pub fn born(&mut self) {
        self.0.push((now_ms(), i64::MAX));
    }

    pub fn died(&mut self) {
        self.0.last_mut().expect("born before").1 = now_ms();
    }

    /// How long after a restart each call that a kill had left unsettled was settled or leased again; each within the
    /// bound, or its life was shorter.
    pub fn settle_times(&self, checked: &Checked) -> Vec<i64> {
        let mut times = Vec::new();
        for execution in &checked.executions {
            let id = execution.head.id();
            for (place, record) in execution.events.iter().enumerate() {
                let due_ms = match &record.event {
                    Event::Leased { .. } | Event::Submitted { .. } | Event::Promoted => record.at_ms,
                    Event::Retried { run_at_ms, .. } => *run_at_ms,
                    _ => continue,
                };
                let next_ms = execution.events.get(place + 1).map_or(i64::MAX, |next| next.at_ms);
                // The lives that found it so.
                for &(born_ms, died_ms) in
                    self.0.iter().filter(|(born_ms, _)| (record.at_ms..next_ms).contains(born_ms))
                {
                    let waited_ms = next_ms.min(died_ms) - born_ms.max(due_ms);
                    assert!(
                        waited_ms <= SETTLED_WITHIN_MS,
                        "{id} was left alone for {waited_ms} ms after a restart:\n{:#?}",
                        execution.events
                    );
                    if next_ms <= died_ms {
                        times.push(next_ms - born_ms);
                    }
                }
            }
        }
        times
    }
}
