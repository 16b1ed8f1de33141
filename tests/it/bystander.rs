//! Whoever has nothing to do with it notices nothing: a client beside others that use equal ids at once, that listen and
//! never read while they are flooded, and that are silent for longer than a session may be idle. And nothing of what these
//! wait for hangs or is lost.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::program::{Program, Setup, server_table};
use crate::support::raw_http::{Connection, Request, open_session};
use crate::support::servers::kit_stdio;

const URI: &str = "corpus://numbers";
/// Calls of the bystander in one slice.
const SLICE: usize = 25;
/// Pairs of slices that are measured at least, and at most.
const PAIRS: std::ops::Range<usize> = 16..80;

fn call(id: Value, tool: &str, arguments: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        .to_string()
}

/// The bystander: one connection on a thread of its own, so that what disturbs it is the program's work and not the test's.
struct Bystander {
    slices: mpsc::Sender<()>,
    measured: tokio::sync::mpsc::UnboundedReceiver<Vec<Duration>>,
}

impl Bystander {
    fn start(port: u16, request: Vec<u8>) -> Bystander {
        let (slices, wanted) = mpsc::channel();
        let (told, measured) = tokio::sync::mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_nodelay(true).unwrap();
            while wanted.recv().is_ok() {
                let took = (0..SLICE).map(|_| once(&mut stream, &request)).collect();
                if told.send(took).is_err() {
                    return;
                }
            }
        });
        Bystander { slices, measured }
    }

    async fn slice(&mut self) -> Vec<Duration> {
        self.slices.send(()).unwrap();
        self.measured.recv().await.expect("the bystander is answered")
    }
}

/// Sends a call and reads its answer, which has a length.
fn once(stream: &mut TcpStream, request: &[u8]) -> Duration {
    let began = Instant::now();
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "the connection was closed");
        answer.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        assert!(head.starts_with("HTTP/1.1 200"), "{text}");
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or_else(|| panic!("an answer with a length: {text}")) {
            assert!(body.contains("bystander"), "{text}");
            return began.elapsed();
        }
    }
}

/// A GET stream; nobody reads it unless the test does.
async fn listen(program: &Program, session: &str) -> Connection {
    let get = Request::new("GET", program.url())
        .header("Accept", "text/event-stream")
        .header("Mcp-Session-Id", session)
        .header("MCP-Protocol-Version", "2025-11-25");
    let mut connection = Connection::open(program.url()).await;
    connection.send(&get.bytes()).await;
    assert_eq!(connection.response_head().await.status, 200);
    connection
}

async fn post(program: &Program, session: &str, message: &str) -> Value {
    Request::legacy(program.url(), Some(session), message).exchange(program.url()).await.answer()
}

/// Calls with one id at once; each gets its own answer.
async fn equal_ids(program: &Program, session: &str) {
    let answers = join_all((0..3).map(|number| async move {
        let message = call(json!(1), "echo", json!({"number": number, "pad": "x".repeat(500)}));
        (number, post(program, session, &message).await)
    }));
    for (number, answer) in answers.await {
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(text.starts_with(&format!("{{\"number\":{number},")) && answer["id"] == 1, "{number}: {text}");
    }
}

fn p99(samples: &mut [Duration]) -> Duration {
    samples.sort_unstable();
    samples[samples.len() * 99 / 100]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bystander_is_as_fast_as_alone_beside_equal_ids_an_unread_flood_and_a_long_silence() {
    let setup = Setup::new("");
    let ledger = crate::support::ledger::Ledger::in_folder(setup.folder());
    let kit = kit_stdio(&["--offers", "--ledger", ledger.path()]);
    let config = format!("[sessions]\nidle_timeout = \"2s\"\n{}", server_table("kit", &kit, ""));
    let program = setup.config(&config).serve().await;
    let open = async || open_session(program.url(), "2025-11-25").await.unwrap();
    let (own, equal, flooded, silent) = (open().await, open().await, open().await, open().await);
    // An open stream is use: what is measured is not how long a slice takes on a busy machine.
    let _kept = (listen(&program, &own).await, listen(&program, &equal).await);
    let mut unread = listen(&program, &flooded).await;
    let subscribe = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": URI}});
    assert_eq!(post(&program, &flooded, &subscribe.to_string()).await["result"], json!({}));
    let gate = setup_gate(&program);
    let silence = call(json!("silent"), "slow", json!({"seconds": 4, "text": "done at last", "gate": gate}));
    let mut silence_stream = Connection::open(program.url()).await;
    silence_stream.send(&Request::legacy(program.url(), Some(&silent), &silence).bytes()).await;

    let echo = Request::legacy(program.url(), Some(&own), &call(json!(1), "echo", json!({"who": "bystander"})));
    let mut bystander = Bystander::start(program.port(), echo.bytes());
    bystander.slice().await;
    // More than the connection holds: from here on the stream stands still.
    let flood = async |count: usize| {
        let flood = call(json!(1), "flood", json!({"count": count, "uri": URI}));
        let told = post(&program, &flooded, &flood).await;
        assert_eq!(told["result"]["content"][0]["text"], "flooded", "{told}");
    };
    flood(4_000).await;
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let mut limit = Duration::ZERO;
    for pair in 0..PAIRS.end {
        alone.extend(bystander.slice().await);
        // In turn: four calls that begin at one instant are a wait for two processors, whoever made them.
        let others = async || if pair % 2 == 0 { equal_ids(&program, &equal).await } else { flood(40).await };
        let (slice, ()) = tokio::join!(bystander.slice(), others());
        together.extend(slice);
        limit = 2 * p99(&mut alone);
        if pair + 1 >= PAIRS.start && p99(&mut together) < limit {
            break;
        }
    }
    let count = together.len();
    let (alone, together) = (p99(&mut alone), p99(&mut together));
    eprintln!("the 99th percentile of {count} calls: {alone:?} alone, {together:?} beside the others");
    assert!(together < limit, "{alone:?} alone, {together:?} beside the others");

    // Nobody has lost anything. What was silent for longer than a session may be idle is answered.
    std::fs::write(&gate, "").unwrap();
    assert_eq!(silence_stream.response_head().await.status, 200);
    let answer = silence_stream.message().await.expect("the answer of the silent call");
    assert!(answer.data.contains("done at last"), "{}", answer.data);
    // And who has not read is told of the resource when it does.
    let update = unread.message().await.expect("what the stream holds");
    assert!(update.data.contains(URI), "{}", update.data);
    drop(unread);
    let mut again = listen(&program, &flooded).await;
    flood(1).await;
    assert!(again.message().await.expect("a new stream").data.contains(URI));
}

fn setup_gate(program: &Program) -> std::path::PathBuf {
    program.setup.folder().join("gate-of-the-silent-call")
}
