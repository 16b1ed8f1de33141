//! The matrix of `docs/mcp-matrix.toml`, run: a client of each revision, on each way to the program, in front of a server of
//! each revision, over each transport, in everything that a client may meet. One test for each server; its failure names
//! the cells. What has an end that comes later is run once more with two `serve` on one PostgreSQL, where whoever returns
//! comes to the other one. What is done in a cell is in `matrix_cells`.

use std::collections::BTreeSet;

use futures_util::StreamExt;

use crate::matrix_cells::observe;
use crate::matrix_scene::Scene;
use crate::matrix_table::{Cell, Table, all_cells, cells_before};
use crate::support::DEADLINE;
use crate::support::stores::On;

/// Clients at once: each makes all its calls at the same time.
const AT_ONCE: usize = 5;

/// What goes over a stream, has a session, asks, or is returned to: it may begin at one replica and end at another.
const ACROSS: [&str; 8] = [
    "progress",
    "cancel",
    "time-out-cancel",
    "elicitation",
    "disconnect-and-return",
    "handle-and-result",
    "task-and-result",
    "task-cancel",
];

macro_rules! upstreams {
    ($($name:ident: $upstream:literal over $over:literal,)*) => {
        /// Every server of the tests below.
        const UPSTREAMS: &[(&str, &str)] = &[$(($upstream, $over)),*];
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                every_client_before($upstream, $over, On::Sqlite).await;
            }
        )*
        mod replicas {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    crate::skip_loudly!(crate::support::stores::On::Postgres.is_set_up());
                    super::every_client_before($upstream, $over, crate::support::stores::On::Postgres).await;
                }
            )*
        }
    };
}

upstreams! {
    clients_of_every_revision_before_a_server_of_2024_11_05_over_stdio: "2024-11-05" over "stdio",
    clients_of_every_revision_before_a_server_of_2024_11_05_over_http: "2024-11-05" over "http",
    clients_of_every_revision_before_a_server_of_2025_03_26_over_stdio: "2025-03-26" over "stdio",
    clients_of_every_revision_before_a_server_of_2025_03_26_over_http: "2025-03-26" over "http",
    clients_of_every_revision_before_a_server_of_2025_06_18_over_stdio: "2025-06-18" over "stdio",
    clients_of_every_revision_before_a_server_of_2025_06_18_over_http: "2025-06-18" over "http",
    clients_of_every_revision_before_a_server_of_2025_11_25_over_stdio: "2025-11-25" over "stdio",
    clients_of_every_revision_before_a_server_of_2025_11_25_over_http: "2025-11-25" over "http",
    clients_of_every_revision_before_a_server_of_2026_07_28_over_stdio: "2026-07-28" over "stdio",
    clients_of_every_revision_before_a_server_of_2026_07_28_over_http: "2026-07-28" over "http",
}

#[test]
fn no_cell_of_the_matrix_is_left_out() {
    let run: BTreeSet<_> = UPSTREAMS.iter().flat_map(|(upstream, over)| cells_before(upstream, over)).collect();
    assert_eq!(run, all_cells().into_iter().collect());
    assert_eq!(run.len(), all_cells().len(), "no cell stands twice");
}

async fn every_client_before(upstream: &'static str, over: &'static str, on: On) {
    let table = Table::read();
    let scene = Scene::start(upstream, over, on).await;
    let mut cells = cells_before(upstream, over);
    if on == On::Postgres {
        // A `wrap` has a file of its own.
        cells.retain(|cell| cell.by != "wrap" && ACROSS.contains(&cell.behaviour));
    }
    let seats: BTreeSet<_> = cells.iter().map(|cell| (cell.client, cell.by)).collect();
    let of_seats = futures_util::stream::iter(seats).map(|(client, by)| {
        let (scene, table, cells) = (&scene, &table, &cells);
        async move {
            let seat = scene.seat(client, by).await;
            let observed = async |cell: &Cell| {
                let expected = &table.rule(cell).outcome;
                let observed = guarded(observe(&seat, cell, expected)).await;
                (*cell, expected.clone(), observed)
            };
            let own = cells.iter().filter(|cell| (cell.client, cell.by) == (client, by));
            let (alone, together): (Vec<_>, Vec<_>) = own.partition(|cell| has_to_be_alone(cell));
            let mut told = Vec::new();
            for cell in alone {
                told.push(observed(cell).await);
            }
            told.extend(futures_util::future::join_all(together.into_iter().map(observed)).await);
            seat.leave().await;
            told
        }
    });
    let told: Vec<_> = of_seats.buffer_unordered(AT_ONCE).flat_map(futures_util::stream::iter).collect().await;
    let run: BTreeSet<_> = told.iter().map(|(cell, ..)| *cell).collect();
    assert_eq!(run, cells.iter().copied().collect(), "every cell was run");
    let wrong: Vec<String> = told
        .iter()
        .filter(|(_, expected, observed)| expected != observed)
        .map(|(cell, expected, observed)| format!("{cell}\n  expected: {expected}\n  observed: {observed}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), told.len(), wrong.join("\n"));
    scene.check_store().await;
}

/// A server's question over stdio names no call: it is taken for the newest one on the server's pipe.
fn has_to_be_alone(cell: &Cell) -> bool {
    (cell.behaviour, cell.by) == ("elicitation", "wrap")
}

/// What a cell comes to when it panics or hangs is an observation too: the failure names all cells that are wrong.
async fn guarded(observing: impl Future<Output = String>) -> String {
    let observed = std::panic::AssertUnwindSafe(tokio::time::timeout(2 * DEADLINE, observing));
    match futures_util::FutureExt::catch_unwind(observed).await {
        Ok(Ok(observed)) => observed,
        Ok(Err(_)) => format!("nothing for {:?}", 2 * DEADLINE),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned())).unwrap_or_default()
        }
    }
}
