//! The worker that `sdk/vectors` drive, in Rust. `sdk/vectors/README.md` says what each tool does.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use durable_mcp_worker::schemars::{self, JsonSchema};
use durable_mcp_worker::{Cancelled, Context, Delivery, Failure, NoArguments, Retry, Tool, ToolError, Worker};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;

fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn number(name: &str, default: u64) -> u64 {
    setting(name).parse().unwrap_or(default)
}

fn name() -> String {
    setting("CONFORMANCE_NAME")
}

fn note(text: &str) -> std::io::Result<()> {
    let mut ledger = OpenOptions::new().append(true).create(true).open(setting("CONFORMANCE_LEDGER"))?;
    // One write, so that lines of several workers do not mix.
    ledger.write_all(format!("{} {text}\n", name()).as_bytes())
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(args: Echo, _: Context) -> Result<String, Failure> {
    Ok(args.text)
}

#[derive(Deserialize, JsonSchema)]
struct Returns {
    kind: String,
}

async fn returns(args: Returns, _: Context) -> Result<Value, Failure> {
    Ok(match args.kind.as_str() {
        "text" => json!("plain"),
        "object" => json!({"sum": 3, "of": [1, 2]}),
        "nothing" => Value::Null,
        "list" => json!([1, 2]),
        "number" => json!(7),
        "result" => json!({"content": [{"type": "text", "text": "as it is"}], "structuredContent": {"n": 1}}),
        "unicode" => json!("naïve ☃ 𝄞 \"quoted\"\n"),
        other => return Err(Failure::new("unknown_kind", other)),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum How {
    ToolError,
    Error,
    Retry,
    RetryNotStarted,
}

#[derive(Deserialize, JsonSchema)]
struct Fails {
    how: How,
    until_attempt: Option<u32>,
}

async fn fails(args: Fails, ctx: Context) -> Result<Value, Failure> {
    let is_early = ctx.attempt() < args.until_attempt.unwrap_or(2);
    let retry = Retry::new("not yet").after(Duration::from_millis(10));
    match args.how {
        How::ToolError => Err(ToolError::new("the tool says no"))?,
        How::Error => Err(std::io::Error::other("nothing there"))?,
        How::Retry if is_early => Err(retry)?,
        How::RetryNotStarted if is_early => Err(retry.not_started())?,
        How::Retry | How::RetryNotStarted => Ok(json!({"attempt": ctx.attempt()})),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    pause_in: Option<String>,
}

async fn steps(args: Steps, ctx: Context) -> Result<Value, Failure> {
    let mut done =
        json!({"attempt": ctx.attempt(), "fencing": ctx.fencing(), "key": ctx.effect_key(), "id": ctx.execution_id()});
    for step in ["one", "two", "three"] {
        let run = async || {
            note(&format!("{step} attempt {}", ctx.attempt()))?;
            if args.pause_in.as_deref() == Some(step) && ctx.attempt() == 1 {
                sleep(Duration::from_secs(60)).await;
            }
            Ok(json!({"by": name()}))
        };
        done[step] = ctx.step(step, run).await?;
    }
    Ok(done)
}

#[derive(Deserialize, JsonSchema)]
struct Block {
    ms: u64,
}

async fn block(args: Block, ctx: Context) -> Result<Value, Failure> {
    note("block begun")?;
    std::thread::sleep(Duration::from_millis(args.ms));
    Ok(json!({"attempt": ctx.attempt()}))
}

#[derive(Deserialize, JsonSchema)]
struct Hold {
    gate: String,
}

async fn hold(args: Hold, ctx: Context) -> Result<Value, Failure> {
    note(&format!("hold begun {}", ctx.attempt()))?;
    while !Path::new(&args.gate).exists() {
        tokio::select! {
            () = ctx.cancelled() => {
                note("hold cancelled")?;
                Err(Cancelled)?;
            }
            () = sleep(Duration::from_millis(10)) => {}
        }
    }
    note("hold ended")?;
    Ok(json!({"by": name(), "attempt": ctx.attempt()}))
}

#[derive(Deserialize, JsonSchema)]
struct Progress {
    count: u32,
}

async fn progress(args: Progress, ctx: Context) -> Result<&'static str, Failure> {
    for at in 1..=args.count {
        ctx.progress(at.into(), Some(args.count.into()), Some(&format!("{at} of {}", args.count)));
        sleep(Duration::from_millis(100)).await;
    }
    Ok("done")
}

async fn checkpoint(_: NoArguments, ctx: Context) -> Result<Value, Failure> {
    if ctx.attempt() == 1 {
        ctx.checkpoint(&json!({"row": 300}))?;
        Err(Retry::new("from here").after(Duration::ZERO))?;
    }
    Ok(json!({"last": ctx.last_checkpoint::<Value>()?, "attempt": ctx.attempt()}))
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Card,
    Cash,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Typed {
    /// Who pays.
    customer: String,
    amount: i64,
    #[serde(default = "one")]
    rate: f64,
    #[serde(default)]
    urgent: bool,
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default = "card")]
    kind: Kind,
}

fn one() -> f64 {
    1.0
}

fn card() -> Kind {
    Kind::Card
}

async fn typed(args: Typed, _: Context) -> Result<Typed, Failure> {
    Ok(args)
}

// One thread for all handlers, so that one that blocks blocks everything.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), durable_mcp_worker::RunError> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let again = |name: &str| Tool::new(name).delivery(Delivery::AtLeastOnce);
    let reads = json!({"readOnlyHint": true});
    Worker::new()
        .name(name())
        .slots(number("CONFORMANCE_SLOTS", 8) as usize)
        .grace(Duration::from_millis(number("CONFORMANCE_GRACE_MS", 5000)))
        .tool(Tool::new("echo").description("Answers with the text it is given.").annotations(reads.clone()), echo)
        .tool(again("returns"), returns)
        .tool(again("fails").max_attempts(3), fails)
        .tool(Tool::new("fails_once").delivery(Delivery::AtMostOnce).max_attempts(3), fails)
        .tool(again("steps").max_attempts(5), steps)
        .tool(again("block"), block)
        .tool(again("hold").max_attempts(5), hold)
        .tool(again("progress"), progress)
        .tool(again("checkpoint"), checkpoint)
        .tool(Tool::new("typed").annotations(reads), typed)
        .run()
        .await
}
