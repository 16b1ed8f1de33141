//! `doctor --ready`: asks the server of this configuration for `/readyz`, and nothing else. For what starts and watches
//! processes, such as a container's health check. Needs no credential, opens no store.

use std::time::Duration;

use serde::Deserialize;

use super::check::Check;
use super::port::{asking, on_this_machine};
use crate::config::Loaded;

/// Who watches asks every few seconds; a later answer is as good as none.
const ASK_TIMEOUT: Duration = Duration::from_secs(4);
/// An answer with more upstreams than this says is not read to its end.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// What `/readyz` says.
#[derive(Debug, Deserialize)]
struct Report {
    ready: bool,
    #[serde(default)]
    reasons: Vec<Reason>,
}

/// Why not.
#[derive(Debug, Deserialize)]
struct Reason {
    code: String,
    #[serde(default)]
    upstream: Option<String>,
}

/// Whether the server takes calls now.
pub async fn check(loaded: &Loaded) -> Check {
    let address = loaded.config.server.listen;
    let check = Check::of("ready", Some(&address.to_string()));
    if address.port() == 0 {
        return check.fail("nobody knows its port", "name one with server.listen");
    }
    let asked = ask(&format!("http://{}/readyz", on_this_machine(address))).await;
    match asked {
        Ok(report) => judge(check, &report),
        Err(reason) => check.fail(reason, "see whether `durable-mcp serve` runs with this configuration, and its log"),
    }
}

async fn ask(url: &str) -> Result<Report, String> {
    let client = asking(ASK_TIMEOUT).ok_or("no connection can be made")?;
    let mut answer = client.get(url).send().await.map_err(|error| match error.is_timeout() {
        true => format!("no answer within {} s", ASK_TIMEOUT.as_secs()),
        false => "nobody answers there".to_owned(),
    })?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|_| "the answer broke off".to_owned())? {
        body.extend_from_slice(&piece);
        if body.len() > ANSWER_BYTES_MAX {
            return Err("another program answers there".into());
        }
    }
    // The status is 503 when it is not ready; the body says the same, and only ours has one.
    serde_json::from_slice(&body).map_err(|_| "another program answers there".into())
}

fn judge(check: Check, report: &Report) -> Check {
    if report.ready && report.reasons.is_empty() {
        return Check { message: "calls are taken".into(), ..check };
    }
    let reasons: Vec<String> = report
        .reasons
        .iter()
        .map(|reason| match &reason.upstream {
            Some(upstream) => format!("{} ({upstream})", reason.code),
            None => reason.code.clone(),
        })
        .collect();
    let next = match report.reasons.first().map(|reason| reason.code.as_str()) {
        Some("draining") => "it is being stopped; wait for the next start",
        Some("upstream_starting") => "wait until its servers are up, or have failed",
        _ => "`durable-mcp doctor` looks at the store; the log of the server says more",
    };
    check.fail(format!("not ready: {}", reasons.join(", ")), next)
}

#[cfg(test)]
mod tests {
    use super::{Check, Report, judge};
    use crate::cli::doctor::check::Status;

    #[test]
    fn only_a_report_that_says_ready_without_a_reason_is_well() {
        for (text, status, says) in [
            (r#"{"ready":true,"reasons":[],"upstreams":{}}"#, Status::Ok, "taken"),
            (r#"{"ready":false,"reasons":[{"code":"draining"}]}"#, Status::Fail, "draining"),
            (
                r#"{"ready":false,"reasons":[{"code":"upstream_starting","upstream":"crm"},{"code":"store_timeout"}]}"#,
                Status::Fail,
                "upstream_starting (crm), store_timeout",
            ),
            (r#"{"ready":true,"reasons":[{"code":"draining"}]}"#, Status::Fail, "draining"),
        ] {
            let report: Report = serde_json::from_str(text).unwrap();
            let check = judge(Check::of("ready", None), &report);
            assert_eq!(check.status, status, "{text}");
            assert!(check.message.contains(says), "{check:?}");
            assert_eq!(check.next.is_some(), status == Status::Fail, "{check:?}");
        }
    }
}
