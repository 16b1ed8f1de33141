//! The smallest worker: one tool that answers what it is told.
//!
//! `durable-mcp serve &` and then `cargo run -p durable-mcp-worker --example echo`

use durable_mcp_worker::schemars::{self, JsonSchema};
use durable_mcp_worker::{Context, Failure, RunError, Tool, Worker};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(args: Echo, _: Context) -> Result<String, Failure> {
    Ok(args.text)
}

#[tokio::main]
async fn main() -> Result<(), RunError> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let tool =
        Tool::new("echo").description("Answers with the text it is given.").annotations(json!({"readOnlyHint": true}));
    Worker::new().name("echo").slots(64).tool(tool, echo).run().await
}
