//! The closed loop: so many clients, each calls, waits for the whole answer, checks it, and calls again. Measures from the
//! first byte sent to the answer read; whoever waits does not ask meanwhile, which is what a closed loop is.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::plan::{Fault, Plan};
use super::stdio::StdioClient;
use super::tally::{Measured, Tally, Window};
use crate::cli::stage::caller::{Caller, Error, Told, ToolCall};
use crate::cli::stage::wire;

/// A call without an answer is given up after so long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// After an error a client rests, so that a dead server is not stormed.
const REST: Duration = Duration::from_millis(20);
/// What is still on its way at the end gets so long.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
const BAR_EVERY: Duration = Duration::from_millis(200);

/// A client of either transport.
pub enum Client {
    Http(Box<Caller>),
    Stdio(StdioClient),
}

impl Client {
    async fn call(&mut self, call: &ToolCall<'_>) -> Result<Told, Error> {
        match self {
            Client::Http(caller) => caller.call(call).await,
            Client::Stdio(client) => client.call(call).await,
        }
    }

    fn hang_up(&mut self) {
        if let Client::Http(caller) = self {
            caller.cut();
        }
    }
}

struct Loop {
    plan: Plan,
    window: Window,
    tally: Mutex<Tally>,
    over: CancellationToken,
}

/// Runs the clients until the window is over, or `stop`. What was measured until then is the answer.
pub async fn measure(plan: &Plan, clients: Vec<Client>, window: Window, stop: &CancellationToken) -> Measured {
    let over = CancellationToken::new();
    let all = Arc::new(Loop { plan: plan.clone(), window, tally: Mutex::default(), over: over.clone() });
    let mut running = JoinSet::new();
    for (number, client) in clients.into_iter().enumerate() {
        running.spawn(call_on(all.clone(), client, number));
    }
    tokio::select! {
        () = tokio::time::sleep_until(window.until.into()) => {}
        () = stop.cancelled() => {}
        () = show(window) => {}
    }
    let passed = window.passed();
    over.cancel();
    let measured = all.tally.lock().unwrap_or_else(PoisonError::into_inner).measured(passed);
    // They do not count any more, but a call that is cut would leave work behind for the next round.
    let _ = tokio::time::timeout(LAST_ANSWERS, async { while running.join_next().await.is_some() {} }).await;
    measured
}

async fn call_on(all: Arc<Loop>, mut client: Client, number: usize) {
    for n in 0.. {
        let key = all.plan.key(number, n);
        let arguments = all.plan.arguments_of(&key);
        let mut first: Option<Told> = None;
        for _ in 0..=all.plan.duplicates {
            if all.over.is_cancelled() {
                return;
            }
            let call = ToolCall { tool: &all.plan.tool, arguments: &arguments, key: Some(&key), wait_ms: None };
            let begun = Instant::now();
            let told = tokio::time::timeout(ANSWER_TIMEOUT, client.call(&call)).await;
            let took = begun.elapsed();
            let counts = all.window.holds(begun + took) && !all.over.is_cancelled();
            let told = match told {
                Ok(Ok(told)) => told,
                failed => {
                    if counts {
                        all.failed(failed);
                    }
                    client.hang_up();
                    tokio::time::sleep(REST).await;
                    break;
                }
            };
            let fault = all.plan.fault(&key, &told, first.as_ref());
            if counts {
                all.note(took, &told, (fault.as_ref(), first.is_some()));
            }
            if fault.is_some() {
                break;
            }
            first.get_or_insert(told);
        }
    }
}

impl Loop {
    fn note(&self, took: Duration, told: &Told, (fault, repeat): (Option<&Fault>, bool)) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Some(Fault::Error(kind)) => tally.failed(kind, || told.text.clone()),
            Some(Fault::Wrong(what)) => tally.wrong(what.clone()),
            None if repeat => tally.repeated(took, told.execution.as_ref().is_some_and(|execution| execution.attached)),
            None => tally.answered(took),
        }
    }

    fn failed(&self, failed: Result<Result<Told, Error>, tokio::time::error::Elapsed>) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match failed {
            Ok(Err(Error::Foreign(what))) => tally.wrong(what.to_owned()),
            Ok(Err(error)) => tally.failed(&kind(&error), || error.to_string()),
            _ => tally.failed("timeout", || format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())),
        }
    }
}

fn kind(error: &Error) -> String {
    match error {
        Error::Wire(wire::Error::Connect(_)) => "connect".to_owned(),
        Error::Wire(_) => "cut".to_owned(),
        Error::Status { status, .. } => format!("status_{status}"),
        Error::Rpc { code, .. } => format!("rpc_{code}"),
        Error::Foreign(_) => "foreign".to_owned(),
    }
}

/// A bar for a person who waits; never ends, and shows nothing where nobody looks.
async fn show(window: Window) {
    if !std::io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    let total_ms = window.until.saturating_duration_since(window.from).as_millis() as u64;
    let bar = ProgressBar::new(total_ms);
    let style = ProgressStyle::with_template("{msg:12} [{bar:40}] {percent:>3} %");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    let _cleared = Cleared(bar.clone());
    loop {
        bar.set_message(if Instant::now() < window.from { "warming up" } else { "measuring" });
        bar.set_position(window.passed().as_millis() as u64);
        tokio::time::sleep(BAR_EVERY).await;
    }
}

/// Takes the bar away when it is dropped.
struct Cleared(ProgressBar);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
