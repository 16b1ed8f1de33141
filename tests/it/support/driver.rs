//! A client in a process of its own, driven by the line protocol of `tests/clients/driver.mjs`.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

use super::client::{Call, Failure, Heard, Kind, Mode, Pending, Place, Target, Waiting};
use super::{DEADLINE, clients_folder};

pub struct Driver {
    child: Child,
    stdin: AsyncMutex<ChildStdin>,
    waiting: Arc<Mutex<Waiting>>,
    heard: Arc<Heard>,
    protocol: String,
}

impl Driver {
    pub async fn connect(kind: Kind, target: &Target) -> Result<Driver, Failure> {
        let mut command = command(kind, target);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", command.as_std()));
        let stdin = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let heard = Arc::<Heard>::default();
        let ready = loop {
            let mut line = String::new();
            let read = timeout(DEADLINE, lines.read_line(&mut line)).await;
            read.unwrap_or_else(|_| panic!("{kind:?} does not get ready")).unwrap();
            let mut said: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("{kind:?} is not ready: {line:?}"));
            match said["notification"].take() {
                Value::Null => break said,
                notification => heard.push(notification),
            }
        };
        if ready["ready"] != true {
            return Err(failure(&ready["error"]));
        }
        let protocol = ready["protocol"].as_str().unwrap_or_default().to_owned();
        let waiting = Waiting::shared();
        tokio::spawn(listen(lines, waiting.clone(), heard.clone()));
        Ok(Driver { child, stdin: AsyncMutex::new(stdin), waiting, heard, protocol })
    }

    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    pub fn heard(&self) -> &Heard {
        &self.heard
    }

    pub async fn list(&self) -> Pending {
        let pending = self.waiting.lock().unwrap().add();
        self.send(json!({"op": "list", "id": pending.id})).await;
        pending
    }

    pub async fn request(&self, method: &str, params: Value) -> Pending {
        let pending = self.waiting.lock().unwrap().add();
        self.send(json!({"op": "request", "id": pending.id, "method": method, "params": params})).await;
        pending
    }

    pub async fn start(&self, call: Call) -> Pending {
        let pending = self.waiting.lock().unwrap().add();
        let Call { name, arguments, meta, params, timeout_ms, progress, reset_on_progress } = call;
        self.send(json!({
            "op": "call", "id": pending.id, "name": name, "arguments": arguments, "meta": meta, "params": params,
            "timeout_ms": timeout_ms, "progress": progress, "reset_on_progress": reset_on_progress,
        }))
        .await;
        pending
    }

    pub async fn cancel(&self, id: &str) {
        self.send(json!({"op": "cancel", "id": id})).await;
    }

    async fn send(&self, op: Value) {
        // A dead driver shows in the answers.
        let _ = self.stdin.lock().await.write_all(format!("{op}\n").as_bytes()).await;
    }

    pub async fn close(mut self) {
        self.send(json!({"op": "close"})).await;
        let status = timeout(DEADLINE, self.child.wait()).await;
        status.expect("a driver ends after close").unwrap();
    }

    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

async fn listen(mut lines: BufReader<ChildStdout>, waiting: Arc<Mutex<Waiting>>, heard: Arc<Heard>) {
    let mut line = String::new();
    while lines.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let mut said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        line.clear();
        if said["notification"].is_object() {
            heard.push(said["notification"].take());
            continue;
        }
        let id = said["id"].as_str().unwrap_or_default().to_owned();
        let mut waiting = waiting.lock().unwrap();
        match said["ok"].as_bool() {
            Some(true) => waiting.answer(&id, Ok(said["result"].take())),
            Some(false) => waiting.answer(&id, Err(failure(&said["error"]))),
            None => waiting.progress(&id, said["progress"].take()),
        }
    }
    waiting.lock().unwrap().abandon();
}

fn command(kind: Kind, target: &Target) -> Command {
    let folder = clients_folder();
    let (program, script, mode) = match kind {
        Kind::Sdk1 => ("node".into(), "sdk1.mjs", Mode::Legacy),
        Kind::Client2(mode) => ("node".into(), "client2.mjs", mode),
        Kind::Python(mode) => (folder.join(".venv/bin/python"), "py_client.py", mode),
        Kind::Rmcp(_) => unreachable!("rmcp needs no driver"),
    };
    let mode = match mode {
        Mode::Legacy => "legacy",
        Mode::Auto => "auto",
        Mode::Modern => "2026-07-28",
    };
    let mut command = Command::new(program);
    command.arg(folder.join(script)).args(["--mode", mode, "--name", &target.name]);
    command.envs(target.env.iter().map(|(name, value)| (name, value)));
    for (name, value) in &target.headers {
        command.arg("--header").arg(format!("{name}: {value}"));
    }
    match &target.place {
        Place::Url(url) => command.args(["--url", url]),
        Place::Command(argv) => command.arg("--stdio").args(argv),
    };
    command
}

fn failure(error: &Value) -> Failure {
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    Failure { code: error["code"].clone(), message, data: error["data"].clone() }
}
