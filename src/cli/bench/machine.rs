//! The limits of the machine in the same run: without them a figure says nothing. Cores, load, what the disk can sync, what
//! loopback HTTP can carry. Measures nothing of ours.

use std::convert::Infallible;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::super::failure::{Exit, Failure};
use super::super::stage::wire::{Connection, whole};

/// How long each limit is measured.
const PROBE: Duration = Duration::from_millis(700);
const BLOCK_BYTES: usize = 4_096;
const ECHO_BYTES: usize = 200;

/// See the module.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Machine {
    /// Cores that this process may use.
    pub cores: usize,
    /// The load average of the last minute, before the run; absent where the system does not tell.
    pub load_before: Option<f64>,
    /// Appends of 4 KiB with fdatasync, one after the other, in a second, before the run.
    pub fsync_per_s_before: f64,
    /// The same after the run.
    pub fsync_per_s_after: f64,
    /// Where that was.
    pub fsync_folder: String,
    /// Bare HTTP echoes of 200 bytes over loopback in a second, with as many clients.
    pub echo_per_s: f64,
}

impl Machine {
    /// What is known before the run.
    pub async fn before(folder: &Path, clients: usize) -> Result<Machine, Failure> {
        Ok(Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load_before: load(),
            fsync_per_s_before: fsyncs(folder).await?,
            fsync_per_s_after: 0.0,
            fsync_folder: folder.display().to_string(),
            echo_per_s: echoes(clients).await?,
        })
    }

    /// The disk again, after the run.
    pub async fn after(&mut self, folder: &Path) -> Result<(), Failure> {
        self.fsync_per_s_after = fsyncs(folder).await?;
        Ok(())
    }
}

fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

async fn fsyncs(folder: &Path) -> Result<f64, Failure> {
    let path = folder.join(format!("fsync-{}", std::process::id()));
    let measured = tokio::task::spawn_blocking(move || {
        let mut file = File::options().create(true).append(true).mode(0o600).open(&path)?;
        let (block, begun, mut synced) = ([b'x'; BLOCK_BYTES], Instant::now(), 0_u64);
        while begun.elapsed() < PROBE {
            file.write_all(&block)?;
            file.sync_data()?;
            synced += 1;
        }
        let rate = synced as f64 / begun.elapsed().as_secs_f64();
        drop(file);
        std::fs::remove_file(&path)?;
        std::io::Result::Ok(rate)
    });
    let rate = measured.await.map_err(std::io::Error::other).and_then(|rate| rate);
    rate.map_err(|error| Failure::new(Exit::Failure, format!("the disk can not be measured: {error}")))
}

async fn echoes(clients: usize) -> Result<f64, Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::new(Exit::Failure, format!("loopback can not be measured: {error}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| failed(&error))?;
    let authority = listener.local_addr().map_err(|error| failed(&error))?.to_string();
    let mut servers = JoinSet::new();
    servers.spawn(serve_echo(listener));
    let (begun, mut running) = (Instant::now(), JoinSet::new());
    for _ in 0..clients {
        running.spawn(echo_until(authority.clone(), begun + PROBE));
    }
    let mut answered = 0;
    while let Some(count) = running.join_next().await {
        answered += count.unwrap_or_default();
    }
    Ok(answered as f64 / begun.elapsed().as_secs_f64())
}

async fn serve_echo(listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        connections.spawn(async move {
            let service = service_fn(|request: Request<Incoming>| async move {
                let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
                Ok::<_, Infallible>(Response::new(Full::new(body)))
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Echoes until the time is up; returns how many came back whole.
async fn echo_until(authority: String, end: Instant) -> u64 {
    let body = Bytes::from_static(&[b'x'; ECHO_BYTES]);
    let Ok(mut connection) = Connection::open(&authority).await else { return 0 };
    let mut answered = 0;
    while Instant::now() < end {
        let request = Request::post("/").header("host", &authority).body(Full::new(body.clone()));
        let Ok(request) = request else { return answered };
        let Ok(response) = connection.send(request).await else { return answered };
        match whole(response.into_body()).await {
            Ok(echo) if echo == body => answered += 1,
            _ => return answered,
        }
    }
    answered
}
