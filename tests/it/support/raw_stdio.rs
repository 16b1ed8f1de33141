//! A stdio server driven by hand: any bytes in, the exact lines out. Knows JSON-RPC ids and nothing else of MCP but how
//! a session is opened.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};

use super::client::{Place, Target};
use super::process::Process;
use super::{DEADLINE, eventually};

pub struct RawStdio {
    pub process: Process,
    stdin: ChildStdin,
}

impl RawStdio {
    pub fn start(target: &Target) -> RawStdio {
        let Place::Command(argv) = &target.place else { panic!("not a command: {target:?}") };
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).envs(target.env.iter().map(|(name, value)| (name, value)));
        let mut process = Process::start_command(command);
        let stdin = process.take_stdin();
        RawStdio { process, stdin }
    }

    /// Starts it and opens a session of a legacy revision.
    pub async fn open(target: &Target, revision: &str) -> RawStdio {
        let mut server = RawStdio::start(target);
        let hello =
            json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
        let answer = server.request(json!("hello"), "initialize", hello).await;
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        server.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        server
    }

    /// Sends one line.
    pub async fn send(&mut self, message: &str) {
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        // A server that is gone shows in its answers.
        let _ = self.stdin.write_all(bytes).await;
        let _ = self.stdin.flush().await;
    }

    /// Sends a request and waits for its answer as JSON.
    pub async fn request(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await;
        serde_json::from_str(&self.answer(&id).await).unwrap()
    }

    pub async fn call(&mut self, id: Value, name: &str, arguments: Value) -> Value {
        self.request(id, "tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// The exact line that answers this id.
    pub async fn answer(&self, id: &Value) -> String {
        let answer = || self.messages().into_iter().find(|line| answers(line, id));
        eventually(&format!("an answer to {id}"), DEADLINE, || answer().is_some()).await;
        answer().unwrap()
    }

    /// Whether this id has been answered so far.
    pub fn has_answered(&self, id: &Value) -> bool {
        self.messages().iter().any(|line| answers(line, id))
    }

    /// All lines so far that are JSON, exactly as they came.
    pub fn messages(&self) -> Vec<String> {
        let stdout = self.process.stdout();
        stdout.lines().filter(|line| serde_json::from_str::<&RawValue>(line).is_ok()).map(str::to_owned).collect()
    }

    /// Ends its input.
    pub fn close_stdin(self) -> Process {
        drop(self.stdin);
        self.process
    }
}

fn answers(line: &str, id: &Value) -> bool {
    // A result may be beyond what `Value` can hold, such as 1e400.
    #[derive(serde::Deserialize)]
    struct Head {
        id: Option<Value>,
        method: Option<String>,
    }
    serde_json::from_str::<Head>(line).is_ok_and(|head| head.method.is_none() && head.id.as_ref() == Some(id))
}
