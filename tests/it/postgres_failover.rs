//! The primary of running processes dies and its synchronous standby takes its place, again and again; and a standby stands
//! still, so that nothing can be acknowledged. Nothing that was answered is lost, nothing runs twice, calls in the gap are
//! refused in time and leave nothing half done, and everything goes on by itself. What becomes of a database that is just
//! away is in `postgres_outages`.

use std::time::Duration;

use futures_util::future::join_all;

use crate::crash_scene::{Call, ClientLedger, pass};
use crate::postgres_scene::{BACK_WITHIN, Clients, is_refused};
use crate::replicas_scene::{Fleet, offers};
use crate::skip_loudly;
use crate::support::cluster::{Cluster, Version, cluster_is_set_up};
use crate::support::pg_proxy::PgProxy;
use crate::support::program::Program;
use crate::support::raw_http::open_session;

const ROUNDS: usize = 5;
const CLIENTS: usize = 8;
/// Clients that hear of nothing for so long have nothing under way that was acknowledged before.
const STILL: Duration = Duration::from_millis(1_500);

/// Two servers that do everything, and a session that both know.
struct Scene {
    fleet: Fleet,
    servers: [Program; 2],
    session: String,
    ledger: ClientLedger,
}

impl Scene {
    async fn new(url: &str) -> Scene {
        let fleet = Fleet::stored_at(url, "", "concurrency = 32");
        let servers = [fleet.start("mcp,worker,scheduler").await, fleet.start("mcp,worker,scheduler").await];
        for server in &servers {
            offers(server, "append").await;
        }
        let (ledger, session) = (ClientLedger::default(), open_session(servers[0].url(), "2025-11-25").await.unwrap());
        for server in &servers {
            // It knows the session from now on.
            let told = ledger.ask_in(server.url(), Some(&session), &Call::new("append", "in-the-session")).await;
            assert_eq!(told.answer().state, "completed");
        }
        Scene { fleet, servers, session, ledger }
    }

    fn urls(&self) -> [String; 2] {
        self.servers.each_ref().map(|server| server.url().to_owned())
    }

    /// A call in each era at each server while nothing can be stored; each is refused in time. The slowest.
    async fn refuses(&self, name: &str) -> Duration {
        let urls = self.urls();
        let probes = urls.iter().enumerate().flat_map(|(at, url)| {
            [None, Some(self.session.as_str())].map(|session| async move {
                let era = if session.is_some() { "legacy" } else { "modern" };
                is_refused(&self.ledger, url, session, &format!("{name}-{at}-{era}")).await
            })
        });
        join_all(probes).await.into_iter().max().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_primaries_die_one_after_the_other_and_nothing_answered_is_lost() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let mut primary = Cluster::start(Version::Debian15).await;
    let mut standby = primary.standby().await;
    let proxy = PgProxy::start(primary.port()).await;
    let mut scene = Scene::new(&primary.url_at(proxy.port())).await;
    let clients = Clients::start(CLIENTS, &scene.ledger, &scene.urls());
    for round in 1..=ROUNDS {
        clients.go_on(5 * CLIENTS).await;
        primary.kill().await;
        proxy.cut_all();
        let refused = scene.refuses(&format!("gap-{round}")).await;
        standby.promote().await;
        proxy.point_to(standby.port());
        let took = clients.go_on(CLIENTS + 1).await;
        eprintln!("round {round}: calls refused within {refused:?}, calls went on after {took:?}");
        assert!(took < BACK_WITHIN, "{took:?}");
        for server in &scene.servers {
            server.ready().await;
        }
        // The next one to die, with a standby of its own that has everything it acknowledges.
        let fresh = standby.standby().await;
        primary = std::mem::replace(&mut standby, fresh);
    }
    clients.go_on(5 * CLIENTS).await;

    clients.leave().await;
    for server in &mut scene.servers {
        assert!(server.sigterm().await.success(), "{}", server.stderr());
    }
    let (tally, checked) = scene.ledger.judge(&scene.fleet.setup, &scene.fleet.ledger).await;
    eprintln!("{ROUNDS} fail-overs: {tally}");
    assert_eq!(checked.executions.len(), tally.calls, "an execution nobody asked for, or one that is lost");
    // Whoever was refused in a gap has nothing in the store, not even half of it.
    let keys = checked.executions.iter().filter_map(|held| held.head.ident.key.as_deref());
    let of_gaps: Vec<_> = keys.filter(|key| key.contains("gap-")).collect();
    assert!(of_gaps.is_empty(), "{of_gaps:?}");
    // What ran when a primary died is told as unknown at the worst, and no more of it than was under way.
    assert!(tally.of("unknown") <= ROUNDS * CLIENTS && tally.of("failed") == 0, "{tally}");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_standby_stands_still_nothing_is_acknowledged_and_then_all_goes_on() {
    skip_loudly!(cluster_is_set_up(Version::Debian15));
    let primary = Cluster::start(Version::Debian15).await;
    let standby = primary.standby().await;
    let mut scene = Scene::new(&primary.url()).await;
    let clients = Clients::start(CLIENTS, &scene.ledger, &scene.urls());
    clients.go_on(5 * CLIENTS).await;

    standby.freeze();
    // What had been acknowledged by then may still be on its way to its client.
    let mut answered = clients.answered();
    loop {
        pass(STILL).await;
        match std::mem::replace(&mut answered, clients.answered()) {
            before if before == answered => break,
            _ => {}
        }
    }
    let refused = scene.refuses("frozen").await;
    pass(Duration::from_secs(2)).await;
    assert_eq!(clients.answered(), answered, "answered although no standby has it");
    standby.thaw();
    let took = clients.go_on(CLIENTS + 1).await;
    assert!(took < BACK_WITHIN, "{took:?}");

    // What was refused may have been stored when the standby went on, and is the same call then.
    let urls = scene.urls();
    for (at, url) in urls.iter().enumerate() {
        for era in ["modern", "legacy"] {
            let text = format!("frozen-{at}-{era}");
            let answer = scene.ledger.insist(url, &Call::new("append", &text)).await;
            let (setup, store) = (&scene.fleet.setup, primary.url());
            let log = setup.cli(&["executions", "events", &answer.id, "--json", "--store", &store]).await;
            assert_eq!(answer.state, "completed", "{text}: {}{}", log.stdout, log.stderr);
            assert_eq!(scene.fleet.ledger.starts(&text).len(), 1, "{text}");
        }
    }
    clients.leave().await;
    for server in &mut scene.servers {
        assert!(server.sigterm().await.success(), "{}", server.stderr());
    }
    let (tally, checked) = scene.ledger.judge(&scene.fleet.setup, &scene.fleet.ledger).await;
    eprintln!("a frozen standby: calls refused within {refused:?}, calls went on after {took:?}; {tally}");
    assert_eq!(checked.executions.len(), tally.calls, "an execution nobody asked for, or one that is lost");
    // Nobody died: whatever ran has its end.
    assert_eq!(tally.of("completed"), tally.calls, "{tally}");
}
