//! `tools list|show`: of a running server, or of the configuration with what was last known of its servers. Calls none.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::args::{SourceFlags, ToolListArgs, ToolShowArgs, ToolsArgs, ToolsCommand};
use super::failure::{Exit, Failure};
use super::output::{Output, printable};
use super::source::Source;
use crate::config::units::Millis;
use crate::engine::view::{ToolView, UpstreamState};
use crate::serve;

/// Runs the command.
pub async fn run(args: ToolsArgs, out: Output) -> Result<Exit, Failure> {
    match args.command {
        ToolsCommand::List(args) => list(&args, &out).await,
        ToolsCommand::Show(args) => show(&args, &out).await,
    }
}

#[derive(Deserialize)]
struct ToolList {
    tools: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    upstream: String,
    upstream_state: String,
    policy: Map<String, Value>,
}

async fn list(args: &ToolListArgs, out: &Output) -> Result<Exit, Failure> {
    let rows = match &args.source.server.url {
        Some(_) => {
            let body = ask(&args.source, "/api/v1/tools").await?;
            let list: ToolList = serde_json::from_str(&body).map_err(|_| unreadable())?;
            list.tools.iter().map(|tool| tool.get().to_owned()).collect()
        }
        None => known(&args.source, None).await?,
    };
    let mut cells = Vec::new();
    for text in &rows {
        let row: Row = serde_json::from_str(text).map_err(|_| unreadable())?;
        if args.upstream.as_ref().is_some_and(|upstream| *upstream != row.upstream) {
            continue;
        }
        if args.source.json {
            out.line(text)?;
            continue;
        }
        let delivery = &row.policy["delivery"];
        let text = |name: &str| delivery[name].as_str().unwrap_or_default().to_owned();
        let attempts = row.policy["retry.max_attempts"]["value"].to_string();
        cells.push(vec![row.name, text("value"), text("source"), attempts, row.upstream, row.upstream_state]);
    }
    if args.source.json {
        return Ok(Exit::Ok);
    }
    out.table(&["NAME", "DELIVERY", "SAID BY", "ATTEMPTS", "UPSTREAM", "STATE"], &cells)?;
    if rows.is_empty() && args.source.server.url.is_none() {
        eprintln!("nothing is configured; name a configuration with --config, or a running server with --url");
    }
    Ok(Exit::Ok)
}

async fn show(args: &ToolShowArgs, out: &Output) -> Result<Exit, Failure> {
    let text = match &args.source.server.url {
        Some(_) => {
            let name: String = form_urlencoded::byte_serialize(args.name.as_bytes()).collect();
            ask(&args.source, &format!("/api/v1/tools/{}", name.replace('+', "%20"))).await?
        }
        None => known(&args.source, Some(&args.name)).await?.pop().ok_or_else(|| {
            Failure::new(Exit::NotFound, format!("no tool {} is known", args.name))
                .next("`durable-mcp tools list` shows those that are; a server is known once it was up")
        })?,
    };
    if args.source.json {
        out.line(&text)?;
        return Ok(Exit::Ok);
    }
    let row: Row = serde_json::from_str(&text).map_err(|_| unreadable())?;
    let members: Map<String, Value> = serde_json::from_str(&text).map_err(|_| unreadable())?;
    let state = format!("{} ({})", row.upstream, row.upstream_state);
    for (name, value) in [
        ("name", row.name.as_str()),
        ("upstream", &state),
        ("title", members["title"].as_str().unwrap_or_default()),
        ("description", members["description"].as_str().unwrap_or_default()),
    ] {
        if !value.is_empty() {
            out.line(&format!("{name:11}  {}", printable(value)))?;
        }
    }
    out.line("")?;
    let setting = |(name, setting): (&String, &Value)| {
        let value = match (&setting["value_ms"], &setting["value"]) {
            (Value::Number(ms), _) => Millis(ms.as_i64().unwrap_or_default()).to_string(),
            (_, Value::Null) => "off".to_owned(),
            (_, Value::String(text)) => text.clone(),
            (_, other) => other.to_string(),
        };
        vec![name.clone(), value, setting["source"].as_str().unwrap_or_default().to_owned()]
    };
    let cells: Vec<Vec<String>> = row.policy.iter().map(setting).collect();
    out.table(&["SETTING", "VALUE", "SAID BY"], &cells)?;
    Ok(Exit::Ok)
}

async fn ask(flags: &SourceFlags, path: &str) -> Result<String, Failure> {
    match Source::open(flags).await? {
        Source::Server(client) => client.get(path, &[]).await,
        Source::Stores(_) => Err(Failure::usage("no server is named").next("name one with --url")),
    }
}

/// The tools of the configuration as JSON; only the one of this name with its definition.
async fn known(flags: &SourceFlags, name: Option<&str>) -> Result<Vec<String>, Failure> {
    let loaded = Arc::new(flags.configuration.load(|_| {})?);
    let mut rows = Vec::new();
    let source = Source::open(flags).await?;
    if let Source::Stores(stores) = &source {
        for named in stores {
            rows.extend(named.store.upstreams().await?);
        }
    }
    source.close().await;
    let listing = serve::known_tools(&loaded, &rows)?;
    let sources = serve::sources(&loaded);
    let mut views = Vec::new();
    for tool in listing.tools.iter().filter(|tool| name.is_none_or(|name| tool.exposed == name)) {
        let view = ToolView::of(tool, UpstreamState::Known, &sources);
        let view = if name.is_some() { view.whole(tool) } else { view };
        views.push(serde_json::to_string(&view).map_err(|error| Failure::new(Exit::Failure, error.to_string()))?);
    }
    Ok(views)
}

fn unreadable() -> Failure {
    Failure::new(Exit::Failure, "a tool came in a form that this program does not know")
        .next("server and command line may be of different versions")
}
