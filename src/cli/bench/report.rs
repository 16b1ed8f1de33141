//! What is printed: a table for a person or one JSON object, and the exit code. Measures nothing.

use schemars::JsonSchema;
use serde::Serialize;

use super::machine::Machine;
use super::tally::{Latency, Measured};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::Output;

/// What was measured, and how.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Header {
    /// The server.
    pub target: String,
    /// The tool.
    pub tool: String,
    /// `legacy` or `modern`.
    pub era: &'static str,
    /// Clients of the closed loop.
    pub clients: usize,
    /// Seconds before the measurement.
    pub warmup_s: f64,
    /// Somebody ended it early.
    pub interrupted: bool,
}

/// One server over HTTP.
#[derive(Serialize, JsonSchema)]
pub struct HttpReport {
    /// `http`.
    pub bench: &'static str,
    #[serde(flatten)]
    pub header: Header,
    #[serde(flatten)]
    pub measured: Measured,
    /// The limits of the machine.
    pub machine: Machine,
}

/// A stdio server directly and behind `wrap`.
#[derive(Serialize, JsonSchema)]
pub struct WrapReport {
    /// `wrap`.
    pub bench: &'static str,
    #[serde(flatten)]
    pub header: Header,
    /// The rounds, in their order.
    pub rounds: Vec<Round>,
    /// The limits of the machine.
    pub machine: Machine,
}

/// What `bench --json` prints: of a server over HTTP, or of a stdio server directly and behind `wrap`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it describes what is printed")]
pub enum BenchView {
    /// One server over HTTP.
    Http(HttpReport),
    /// A stdio server directly and behind `wrap`.
    Wrap(WrapReport),
}

/// One after the other, in one round.
#[derive(Serialize, JsonSchema)]
pub struct Round {
    /// The server by itself.
    pub direct: Measured,
    /// Behind `wrap`.
    pub wrap: Measured,
    /// Calls in a second, behind `wrap` to directly.
    pub ratio: f64,
}

impl HttpReport {
    /// Prints it and says how the command ends.
    pub fn print(&self, out: &Output, json: bool) -> Result<Exit, Failure> {
        if json {
            out.line(&text(self)?)?;
        } else {
            let measured = &self.measured;
            title(&self.header, measured.seconds, out)?;
            let per_s = grouped(measured.calls_per_s);
            out.line(&format!("calls/s          {per_s}"))?;
            out.line(&format!("latency in ms    {}", latency(&measured.latency_ms)))?;
            let (calls, wrong) = (grouped(measured.calls as f64), measured.wrong);
            out.line(&format!("answers          {calls}, each checked: {wrong} wrong, {}", errors(measured)))?;
            if let Some(repeats) = &measured.repeats {
                let (answered, attached) = (grouped(repeats.answered as f64), grouped(repeats.attached as f64));
                out.line(&format!(
                    "repeated keys    {answered} answered ({}/s), {attached} of them from the first call's execution",
                    grouped(repeats.per_s)
                ))?;
                out.line(&format!("  latency in ms  {}", latency(&repeats.latency_ms)))?;
            }
            machine(&self.machine, self.header.clients, out)?;
        }
        exit([&self.measured])
    }
}

impl WrapReport {
    /// Prints it and says how the command ends.
    pub fn print(&self, out: &Output, json: bool) -> Result<Exit, Failure> {
        if json {
            out.line(&text(self)?)?;
        } else {
            let seconds = self.rounds.iter().map(|round| round.direct.seconds).sum();
            title(&self.header, seconds, out)?;
            let mut rows = Vec::new();
            for (n, round) in self.rounds.iter().enumerate() {
                let (direct, wrap) = (&round.direct, &round.wrap);
                let mut row = |what: &str, direct: String, wrap: String, ratio: String| {
                    rows.push(vec![(n + 1).to_string(), what.to_owned(), direct, wrap, ratio]);
                };
                row("calls/s", grouped(direct.calls_per_s), grouped(wrap.calls_per_s), format!("{:.2}", round.ratio));
                for (what, of) in [
                    ("p50 ms", (|latency| latency.p50) as fn(&Latency) -> f64),
                    ("p99 ms", |latency| latency.p99),
                    ("max ms", |latency| latency.max),
                ] {
                    let (direct, wrap) = (of(&direct.latency_ms), of(&wrap.latency_ms));
                    row(what, format!("{direct:.2}"), format!("{wrap:.2}"), format!("{:+.2}", wrap - direct));
                }
                row("answers", grouped(direct.calls as f64), grouped(wrap.calls as f64), String::new());
                row("errors", errors(direct), errors(wrap), String::new());
            }
            out.table(&["ROUND", "", "DIRECT", "BEHIND WRAP", "RATIO"], &rows)?;
            machine(&self.machine, self.header.clients, out)?;
        }
        exit(self.rounds.iter().flat_map(|round| [&round.direct, &round.wrap]))
    }
}

fn text(report: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(report)
        .map_err(|error| Failure::new(Exit::Failure, format!("the report has no JSON: {error}")))
}

fn title(header: &Header, seconds: f64, out: &Output) -> Result<(), Failure> {
    let Header { target, tool, era, clients, warmup_s, interrupted } = header;
    let early = if *interrupted { " (ended early)" } else { "" };
    out.line(&format!(
        "{target}, {tool}, {clients} clients in a closed loop, {era}: {seconds:.1} s{early} after {warmup_s:.1} s of warm-up"
    ))
}

fn machine(machine: &Machine, clients: usize, out: &Output) -> Result<(), Failure> {
    let load = machine.load_before.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    out.line(&format!("machine          {} cores, load {load} before", machine.cores))?;
    let (before, after) = (grouped(machine.fsync_per_s_before), grouped(machine.fsync_per_s_after));
    out.line(&format!("  fsync/s        {before} before, {after} after (4 KiB append + fdatasync, one at a time)"))?;
    out.line(&format!("  loopback/s     {} bare HTTP echoes with {clients} clients", grouped(machine.echo_per_s)))
}

fn latency(latency: &Latency) -> String {
    let Latency { p50, p90, p99, max } = latency;
    format!("p50 {p50:.2}   p90 {p90:.2}   p99 {p99:.2}   max {max:.2}")
}

fn errors(measured: &Measured) -> String {
    if measured.errors.is_empty() {
        return "0 errors".to_owned();
    }
    let kinds: Vec<String> = measured.errors.iter().map(|(kind, errors)| format!("{} {kind}", errors.count)).collect();
    format!("errors: {}", kinds.join(", "))
}

/// A run in which nothing was answered, or something wrongly, proves nothing.
fn exit<'a>(measured: impl IntoIterator<Item = &'a Measured>) -> Result<Exit, Failure> {
    for measured in measured {
        if let Some(first) = &measured.first_wrong {
            let error = format!("{} answers were not those of their calls: {first}", measured.wrong);
            return Err(Failure::new(Exit::Failure, error));
        }
        if measured.calls == 0 {
            let first = measured.errors.iter().next().map(|(kind, errors)| format!(": {kind}: {}", errors.first));
            return Err(Failure::new(Exit::Failure, format!("no call was answered{}", first.unwrap_or_default()))
                .next("give it a longer --duration, or try the call with `durable-mcp call`"));
        }
    }
    Ok(Exit::Ok)
}

/// A whole number with commas.
pub fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
