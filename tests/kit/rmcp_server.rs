//! A small server of the official Rust SDK, over stdio and Streamable HTTP: an upstream whose protocol code nobody here
//! wrote. No ledger: its tools have no side effects.

use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{Json, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone)]
struct Fixture;

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sums {
    sum: i64,
    product: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Greeting {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nap {
    milliseconds: u64,
}

#[tool_router]
impl Fixture {
    #[tool(description = "Adds and multiplies", annotations(read_only_hint = true))]
    async fn calculate(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> Result<Json<Sums>, String> {
        let sum = a.checked_add(b).ok_or("the sum is too big")?;
        let product = a.checked_mul(b).ok_or("the product is too big")?;
        Ok(Json(Sums { sum, product }))
    }

    #[tool(description = "Greets by name", annotations(idempotent_hint = true))]
    async fn greet(&self, Parameters(Greeting { name }): Parameters<Greeting>) -> String {
        format!("Hello, {name}!")
    }

    #[tool(description = "Sleeps and tells for how long")]
    async fn nap(&self, Parameters(Nap { milliseconds }): Parameters<Nap>) -> String {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        format!("slept {milliseconds} ms")
    }

    #[tool(description = "Is always a tool error")]
    async fn refuse(&self) -> Result<String, String> {
        Err("refused".to_owned())
    }
}

#[tool_handler]
impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = ServerCapabilities::builder().enable_tools().build();
        info.server_info = Implementation::new("rmcp-fixture", "1");
        info.instructions = Some("A fixture of the official Rust SDK".to_owned());
        info
    }
}

pub async fn serve_stdio() -> anyhow::Result<()> {
    Fixture.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}

pub async fn serve_http(port: u16) -> anyhow::Result<()> {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Fixture), sessions, StreamableHttpServerConfig::default());
    crate::http::listen(axum::Router::new().nest_service("/mcp", service), port).await
}
