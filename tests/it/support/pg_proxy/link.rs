//! One connection: both directions, message by message, and the faults carried out. What comes when is `plan`'s.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::frames::{Frame, Opening, error, query, read_frame, read_opening};
use super::plan::{Course, Fault};
use super::{Flow, Shared, cockroach, statements};

/// What becomes of the answer to a unit.
enum Answer {
    Pass,
    /// What comes before the error is ours.
    FromTheError,
    /// Done, but told as this error.
    Instead(Frame),
    Cut,
    /// Never told; nothing else is any more.
    Silent,
}

/// Answers that are still to come, in order.
type Answers = Arc<Mutex<VecDeque<Answer>>>;

/// Until either side closes or a fault cuts it.
pub async fn run(client: TcpStream, server: TcpStream, number: u64, shared: Arc<Shared>, cut: CancellationToken) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let answers = Answers::default();
    let flow = shared.flow.subscribe();
    let seed = shared.seed.load(Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number << 1);
    let to_client = Arc::new(tokio::sync::Mutex::new(Writer { to: to_client, flow: flow.clone() }));
    let up = Up {
        from: BufReader::new(from_client),
        to: Writer { to: to_server, flow: flow.clone() },
        back: to_client.clone(),
        answers: answers.clone(),
        named: HashMap::new(),
        bound: HashMap::new(),
        course: Course::new(seed),
        shared,
        flow: flow.clone(),
        cut: cut.clone(),
    };
    let down = Down { from: BufReader::new(from_server), to: to_client, answers, flow, cut: cut.clone() };
    tokio::select! {
        () = cut.cancelled() => {}
        _ = up.run() => {}
        _ = down.run() => {}
    }
    cut.cancel();
}

/// Writes as the flow says.
struct Writer {
    to: OwnedWriteHalf,
    flow: watch::Receiver<Flow>,
}

impl Writer {
    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let (delay, drips) = {
            let flow = self.flow.borrow();
            (flow.delay, flow.drips)
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if !drips {
            return self.to.write_all(bytes).await;
        }
        for byte in bytes {
            self.to.write_all(&[*byte]).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Waits while nothing is to be read.
async fn flowing(flow: &mut watch::Receiver<Flow>) {
    // The proxy lives as long as its connections.
    let _ = flow.wait_for(|flow| !flow.stands).await;
}

async fn next_frame(from: &mut (impl AsyncRead + Unpin), flow: &mut watch::Receiver<Flow>) -> std::io::Result<Frame> {
    flowing(flow).await;
    let frame = read_frame(from).await?;
    // It may have been told to stand while it waited.
    flowing(flow).await;
    Ok(frame)
}

struct Up {
    from: BufReader<OwnedReadHalf>,
    to: Writer,
    back: Arc<tokio::sync::Mutex<Writer>>,
    answers: Answers,
    /// Prepared statements by name, and what portals are bound to.
    named: HashMap<String, String>,
    bound: HashMap<String, String>,
    course: Course,
    shared: Arc<Shared>,
    flow: watch::Receiver<Flow>,
    cut: CancellationToken,
}

impl Up {
    async fn run(mut self) -> std::io::Result<()> {
        loop {
            flowing(&mut self.flow).await;
            match read_opening(&mut self.from).await? {
                Opening::Encryption => self.back.lock().await.write(b"N").await?,
                Opening::Start(bytes) => {
                    self.expect(Answer::Pass);
                    self.to.write(&bytes).await?;
                    break;
                }
            }
        }
        let mut unit: Vec<Frame> = Vec::new();
        loop {
            let frame = next_frame(&mut self.from, &mut self.flow).await?;
            let kind = frame.kind;
            match kind {
                // Passwords, copied rows and the end belong to no unit.
                b'p' | b'd' | b'c' | b'f' | b'X' => self.to.write(&frame.bytes).await?,
                b'Q' | b'S' => {
                    unit.push(frame);
                    self.unit(std::mem::take(&mut unit)).await?;
                }
                _ => unit.push(frame),
            }
            if kind == b'H' {
                // It is answered before its end: too late for faults, except that the end is still to come.
                self.forward(&std::mem::take(&mut unit)).await?;
            }
        }
    }

    fn expect(&self, answer: Answer) {
        self.answers.lock().unwrap().push_back(answer);
    }

    async fn forward(&mut self, unit: &[Frame]) -> std::io::Result<()> {
        let bytes: Vec<u8> = unit.iter().flat_map(|frame| frame.bytes.iter().copied()).collect();
        self.to.write(&bytes).await
    }

    /// The statements that a unit runs; learns what it prepares.
    fn statements(&mut self, unit: &[Frame]) -> Vec<String> {
        let mut run = Vec::new();
        for frame in unit {
            match frame.kind {
                b'Q' => run.extend(statements::split(&frame.texts(1)[0])),
                b'P' => {
                    let texts = frame.texts(2);
                    self.named.insert(texts[0].clone(), texts[1].clone());
                }
                b'B' => {
                    let texts = frame.texts(2);
                    let statement = self.named.get(&texts[1]).cloned().unwrap_or_default();
                    self.bound.insert(texts[0].clone(), statement);
                }
                b'E' => run.extend(self.bound.get(&frame.texts(1)[0]).cloned()),
                _ => {}
            }
        }
        run
    }

    async fn unit(&mut self, mut unit: Vec<Frame>) -> std::io::Result<()> {
        let run = self.statements(&unit);
        if self.flow.borrow().is_cockroach {
            if let Some(code) = run.iter().find_map(|statement| cockroach::refuses(statement)) {
                return self.fail(code, "unimplemented: this is CockroachDB (of the fault proxy)", false).await;
            }
            for frame in unit.iter_mut().filter(|frame| matches!(frame.kind, b'Q' | b'P')) {
                *frame = frame.with_statement(cockroach::rewrite);
            }
        }
        let fault = if run.is_empty() { None } else { self.course.unit(&run, &mut self.shared.plan.lock().unwrap()) };
        let ends = run.iter().any(|statement| statements::Does::of(statement) == statements::Does::Commit);
        match fault {
            None => self.expect(Answer::Pass),
            Some(Fault::Error(code)) => return self.fail(code, "made by the fault proxy", ends).await,
            Some(Fault::Cut) => {
                self.cut.cancel();
                return Ok(());
            }
            Some(Fault::DoneAndError(code)) => self.expect(Answer::Instead(error(code, "made by the fault proxy"))),
            Some(Fault::DoneAndCut) => self.expect(Answer::Cut),
            Some(Fault::DoneAndSilent) => self.expect(Answer::Silent),
        }
        self.forward(&unit).await
    }

    /// Lets the server itself fail, so that its transaction is what the client is told.
    async fn fail(&mut self, code: &str, message: &str, ends: bool) -> std::io::Result<()> {
        let fails = format!("DO $fault$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{code}'; END $fault$");
        // A COMMIT that fails ends the transaction.
        let sql = if ends { format!("ROLLBACK; {fails}") } else { fails };
        self.expect(Answer::FromTheError);
        self.to.write(&query(&sql).bytes).await
    }
}

struct Down {
    from: BufReader<OwnedReadHalf>,
    to: Arc<tokio::sync::Mutex<Writer>>,
    answers: Answers,
    flow: watch::Receiver<Flow>,
    cut: CancellationToken,
}

impl Down {
    async fn run(mut self) -> std::io::Result<()> {
        let mut failed = false;
        loop {
            let frame = next_frame(&mut self.from, &mut self.flow).await?;
            // Notices, settings and notifications come at any time.
            let aside = matches!(frame.kind, b'N' | b'S' | b'A');
            failed |= frame.kind == b'E';
            let ends = frame.kind == b'Z';
            let write: Vec<u8> = {
                let answers = self.answers.lock().unwrap();
                match answers.front() {
                    None | Some(Answer::Pass) => frame.bytes,
                    Some(Answer::FromTheError) if aside || failed => frame.bytes,
                    Some(Answer::Instead(_)) if failed => frame.bytes,
                    Some(Answer::Instead(instead)) if ends => [&*instead.bytes, &*frame.bytes].concat(),
                    Some(_) => Vec::new(),
                }
            };
            if ends {
                failed = false;
                let answer = self.answers.lock().unwrap().pop_front();
                match answer {
                    Some(Answer::Cut) => {
                        self.cut.cancel();
                        return Ok(());
                    }
                    Some(Answer::Silent) => return self.swallow().await,
                    _ => {}
                }
            }
            if !write.is_empty() {
                self.to.lock().await.write(&write).await?;
            }
        }
    }

    async fn swallow(&mut self) -> std::io::Result<()> {
        let mut rest = [0; 4096];
        while self.from.read(&mut rest).await? > 0 {}
        // The server has gone; the client still hears nothing.
        std::future::pending().await
    }
}
