//! The client of the official Rust SDK, in this process, in its three ways to start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    MetaObject, ProgressNotificationParam, ProtocolVersion, RequestMetaObject, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions,
    RunningService, ServiceError,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::client::{Answer, Call, Failure, Heard, Mode, Pending, Place, Target, Waiting};

pub struct Rmcp {
    service: RunningService<RoleClient, Ears>,
    ears: Ears,
    cancels: Mutex<HashMap<String, CancellationToken>>,
    protocol: String,
}

/// What the SDK calls back.
#[derive(Clone)]
struct Ears {
    info: ClientConfig,
    waiting: Arc<Mutex<Waiting>>,
    heard: Arc<Heard>,
    /// The call that a progress token belongs to.
    tokens: Arc<Mutex<HashMap<String, String>>>,
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let token = json!(progress.progress_token).to_string();
        let id = self.tokens.lock().unwrap().get(&token).cloned();
        if let Some(id) = id {
            self.waiting.lock().unwrap().progress(&id, json!(progress));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.heard.push(json!({"method": "notifications/tools/list_changed"}));
    }
}

impl Rmcp {
    pub async fn connect(mode: Mode, target: &Target) -> Result<Rmcp, Failure> {
        // The SDK's HTTP client asks for one even where nothing is encrypted; a second installation is refused, rightly.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ears = Ears {
            info: ClientConfig::new(ClientCapabilities::default(), Implementation::new(target.name.clone(), "1")),
            waiting: Waiting::shared(),
            heard: Arc::default(),
            tokens: Arc::default(),
        };
        let modern = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match mode {
            Mode::Legacy => ClientLifecycleMode::Initialize,
            Mode::Auto => ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version: None },
            Mode::Modern => ClientLifecycleMode::Discover { preferred_versions: modern },
        };
        let service = match &target.place {
            Place::Url(url) => {
                let headers =
                    target.headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
                let config =
                    StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers.collect());
                ears.clone().serve_with_lifecycle(StreamableHttpClientTransport::from_config(config), lifecycle).await
            }
            Place::Command(argv) => {
                let mut command = Command::new(&argv[0]);
                command.args(&argv[1..]).envs(target.env.iter().map(|(name, value)| (name, value)));
                let child = TokioChildProcess::new(command).unwrap_or_else(|error| panic!("{argv:?}: {error}"));
                ears.clone().serve_with_lifecycle(child, lifecycle).await
            }
        };
        let service = service.map_err(refused)?;
        let protocol = service.peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default();
        Ok(Rmcp { service, ears, cancels: Mutex::default(), protocol })
    }

    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    pub fn heard(&self) -> &Heard {
        &self.ears.heard
    }

    pub async fn list(&self) -> Answer {
        let tools = self.service.list_all_tools().await.map_err(failed)?;
        Ok(json!({"tools": tools}))
    }

    pub async fn start(&self, call: Call) -> Pending {
        assert!(call.params.is_none() && !call.reset_on_progress, "rmcp offers no such option");
        let mut params = CallToolRequestParams::new(call.name);
        params.arguments = call.arguments.as_object().cloned();
        let mut options = PeerRequestOptions::no_options();
        if let Some(Value::Object(meta)) = call.meta {
            options = options.with_meta(RequestMetaObject(MetaObject(meta)));
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let pending = self.ears.waiting.lock().unwrap().add();
        let id = pending.id.clone();
        let mut handle = match self.service.send_cancellable_request(request, options).await {
            Ok(handle) => handle,
            Err(error) => {
                self.ears.waiting.lock().unwrap().answer(&id, Err(failed(error)));
                return pending;
            }
        };
        // The SDK sends a progress token with every request, asked for or not.
        self.ears.tokens.lock().unwrap().insert(json!(handle.progress_token).to_string(), id.clone());
        let cancelled = CancellationToken::new();
        self.cancels.lock().unwrap().insert(id.clone(), cancelled.clone());
        let waiting = self.ears.waiting.clone();
        tokio::spawn(async move {
            let deadline = async {
                match call.timeout_ms {
                    Some(timeout_ms) => tokio::time::sleep(Duration::from_millis(timeout_ms)).await,
                    None => std::future::pending().await,
                }
            };
            let answer = tokio::select! {
                response = &mut handle.rx => response.unwrap_or(Err(ServiceError::TransportClosed)).map_err(failed).map(result),
                () = cancelled.cancelled() => {
                    let _ = handle.cancel(Some("cancelled by the test".to_owned())).await;
                    Err(Failure::of("cancelled", "cancelled by the test"))
                }
                () = deadline => {
                    // The words that the SDK itself uses when its own timer fires.
                    let _ = handle.cancel(Some("request timeout".to_owned())).await;
                    Err(Failure::of("timeout", "request timeout"))
                }
            };
            waiting.lock().unwrap().answer(&id, answer);
        });
        pending
    }

    pub fn cancel(&self, id: &str) {
        if let Some(cancelled) = self.cancels.lock().unwrap().get(id) {
            cancelled.cancel();
        }
    }

    pub async fn close(self) {
        self.service.cancel().await.unwrap();
    }
}

fn result(result: ServerResult) -> Value {
    match result {
        ServerResult::CallToolResult(result) => json!(result),
        other => json!(other),
    }
}

fn failed(error: ServiceError) -> Failure {
    match error {
        ServiceError::McpError(error) => Failure {
            code: json!(error.code.0),
            message: error.message.to_string(),
            data: error.data.unwrap_or(Value::Null),
        },
        other => Failure::of("transport", &other.to_string()),
    }
}

fn refused(error: ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::JsonRpcError(error) => failed(ServiceError::McpError(error)),
        other => Failure::of("refused", &other.to_string()),
    }
}
