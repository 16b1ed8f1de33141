//! The server dies as by kill -9 at each named point of a call, with both deliveries, again and again on the same store;
//! then it lives, the clients repeat what they do not know, and client, fixture and store are held against each other.

use std::collections::BTreeSet;

use durable_mcp::store::crash;
use futures_util::StreamExt;
use futures_util::future::join_all;

use crate::crash_scene::{Call, ClientLedger, Lives, Tally, kit_setup, listening};
use crate::support::DEADLINE;
use crate::support::ledger::Ledger;
use crate::support::program::Setup;

/// Servers at once.
const LANES: usize = 3;
/// Armed lives of each lane.
const ROUNDS: usize = 5;
/// Calls at once in each of them.
const CALLS: usize = 3;
/// Further calls, one after the other, until the point was passed often enough.
const MORE_CALLS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    AtMostOnce,
    AtLeastOnce,
}

/// How a call comes by the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Leased at submission, answered at once.
    Plain,
    /// Waits for its turn and is claimed.
    Queued,
    /// The fixture dies under it.
    Lost,
    /// Takes longer than some heartbeats.
    Slow,
    /// Killed in the call; the next start dies while it settles what that left.
    Start,
}

impl Way {
    fn to(point: &str) -> Way {
        match point {
            "before_claim" | "leased" => Way::Queued,
            "before_fail" | "fail_recorded" => Way::Lost,
            "before_heartbeat" | "heartbeat_written" => Way::Slow,
            "before_settle" | "settled" | "buried" => Way::Start,
            _ => Way::Plain,
        }
    }

    fn setup(self) -> (Setup, Ledger) {
        let retry = "[defaults]\nretry = { initial_interval = \"50ms\" }\n";
        let lease = "[lease]\nttl = \"3s\"\nheartbeat = \"20ms\"\n";
        let restart = "restart = { initial_interval = \"10ms\", max_interval = \"50ms\" }";
        match self {
            Way::Queued => kit_setup(retry, "concurrency = 1"),
            Way::Slow => kit_setup(&format!("{retry}{lease}"), ""),
            Way::Plain | Way::Lost | Way::Start => kit_setup(retry, restart),
        }
    }

    fn call(self, delivery: Delivery, text: &str) -> Call {
        match (self, delivery) {
            (Way::Plain | Way::Start, Delivery::AtMostOnce) => Call::new("append", text),
            (Way::Plain | Way::Start, Delivery::AtLeastOnce) => Call::new("append_idempotent", text),
            (Way::Queued, Delivery::AtMostOnce) => Call::slow("slow", text, 0.02),
            (Way::Queued, Delivery::AtLeastOnce) => Call::slow("slow_idempotent", text, 0.02),
            (Way::Lost, Delivery::AtMostOnce) => Call::new("crash_after_write", text),
            (Way::Lost, Delivery::AtLeastOnce) => Call::new("crash_idempotent", text),
            (Way::Slow, Delivery::AtMostOnce) => Call::slow("slow", text, 0.3),
            (Way::Slow, Delivery::AtLeastOnce) => Call::slow("slow_idempotent", text, 0.3),
        }
    }
}

/// One store, one point, one delivery.
#[derive(Clone, Copy, Debug)]
struct Lane {
    point: &'static str,
    delivery: Delivery,
}

impl Lane {
    async fn walk(self) -> (Lane, Tally) {
        let way = Way::to(self.point);
        let (setup, ledger) = way.setup();
        let (clients, mut lives, mut kills) = (ClientLedger::default(), Lives::default(), 0);
        // A first life, so that the tools are known from the start of all others.
        lives.born();
        setup.serve().await.kill_9().await;
        lives.died();
        for round in 1..=ROUNDS {
            // The n-th passing, so that other calls stand at other places.
            let passing = match self.point {
                // The writer comes by with all kinds of writes, those of the start included.
                "before_commit" | "after_commit" => 2 * round - 1,
                _ => (round - 1) % CALLS + 1,
            };
            let point = match way {
                Way::Start if !round.is_multiple_of(2) => "before_call:1".to_owned(),
                Way::Start => format!("{}:1", self.point),
                _ => format!("{}:{passing}", self.point),
            };
            lives.born();
            let mut server = setup.clone().crash_at(&point).start_serve(0);
            if let Some(url) = listening(&mut server).await {
                let call = |n| way.call(self.delivery, &format!("{}-{round}-{n}", self.point));
                let calls: Vec<Call> = (0..CALLS).map(call).collect();
                join_all(calls.iter().map(|call| clients.ask(&url, call))).await;
                // Writes share commits, and a kill may come a moment after the last answer.
                for n in CALLS..CALLS + MORE_CALLS {
                    if server.is_running() {
                        clients.ask(&url, &call(n)).await;
                    }
                }
                crate::support::eventually(&format!("a death at {point}"), DEADLINE, || !server.is_running()).await;
            }
            kills += 1;
            lives.died();
        }
        lives.born();
        let mut server = setup.serve().await;
        let calls = clients.calls();
        let answers = join_all(calls.iter().map(|call| clients.insist(server.url(), call))).await;
        assert_eq!(answers.len(), calls.len());
        assert!(server.sigterm().await.success(), "{}", server.stderr());
        let (mut tally, checked) = clients.judge(&setup, &ledger).await;
        tally.kills = kills;
        tally.settle_ms = lives.settle_times(&checked);
        (self, tally)
    }
}

async fn walk_all(delivery: Delivery) {
    let lanes = crash::POINTS.map(|point| Lane { point, delivery }.walk());
    let mut walked = futures_util::stream::iter(lanes).buffer_unordered(LANES);
    let (mut all, mut points) = (Tally::default(), BTreeSet::new());
    while let Some((lane, tally)) = walked.next().await {
        eprintln!("{:<20} {tally}", lane.point);
        points.insert(lane.point);
        all.add(tally);
    }
    eprintln!("{delivery:?}: {all}");
    assert_eq!(points, BTreeSet::from(crash::POINTS), "every point was walked");
    assert_eq!(all.kills, crash::POINTS.len() * ROUNDS);
    assert!(all.of("completed") * 4 >= all.calls, "too few calls went through to mean something: {all}");
    match delivery {
        Delivery::AtMostOnce => assert!(all.of("unknown") > 0, "{all}"),
        Delivery::AtLeastOnce => assert_eq!(all.of("unknown"), 0, "{all}"),
    }
    assert!(!all.settle_ms.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_point_of_a_call_runs_an_at_most_once_tool_at_most_once() {
    walk_all(Delivery::AtMostOnce).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_point_of_a_call_runs_an_at_least_once_tool_until_it_is_done() {
    walk_all(Delivery::AtLeastOnce).await;
}
