//! The text of a notification: who says it, and what changed. What a release before this one says, or one after it, means
//! that anything may have changed. Sends and hears nothing.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::model::id::ExecutionId;
use crate::store::News;

/// Bytes of a text at most: PostgreSQL takes less than 8,000.
const BYTES_MAX: usize = 7_900;

/// What one process says to all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) news: News,
    /// It waits for executions that run elsewhere.
    pub(super) attends: bool,
    /// It has just begun to listen, and knows of nobody who waits.
    pub(super) begins: bool,
}

/// The same as it is written.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Text {
    from: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    executions: BTreeSet<ExecutionId>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    work: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    workers: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    anything: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    attends: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    begins: bool,
}

/// What is false is not written; serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(it: &bool) -> bool {
    !*it
}

impl Said {
    /// The text; what does not fit is not named.
    pub(super) fn write(self, from: Uuid) -> String {
        let Said { news, attends, begins } = self;
        let News { executions, work, workers, anything, due: _ } = news;
        let from = from.simple().to_string();
        let whole = Text { from: from.clone(), executions, work, workers, anything, attends, begins };
        match serde_json::to_string(&whole) {
            Ok(text) if text.len() <= BYTES_MAX => text,
            _ => {
                let short = Text { from: from.clone(), anything: true, attends, begins, ..Text::default() };
                // Plain words always serialise; a name alone means anything, too.
                serde_json::to_string(&short).unwrap_or(from)
            }
        }
    }

    /// What somebody else says; nothing when it is said by `own` itself.
    pub(super) fn read(text: &str, own: Uuid) -> Option<Said> {
        if text.contains(own.simple().encode_lower(&mut Uuid::encode_buffer()) as &str) {
            return None;
        }
        let said = match serde_json::from_str::<Text>(text) {
            Ok(Text { from: _, executions, work, workers, anything, attends, begins }) => {
                Said { news: News { executions, work, workers, anything, due: false }, attends, begins }
            }
            // It may wait for executions that run elsewhere, and can not say so.
            Err(_) => Said { news: News::anything(), attends: true, begins: false },
        };
        Some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> ExecutionId {
        ExecutionId::from_u64_pair(7, number)
    }

    #[test]
    fn what_is_said_is_read_by_everybody_but_its_own_process() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let news = News {
            executions: BTreeSet::from([id(1), id(2)]),
            work: BTreeSet::from(["a \"quoted\" lane\u{1f}".to_owned()]),
            workers: true,
            ..News::default()
        };
        for said in [
            Said { news, attends: false, begins: true },
            Said { news: News::anything(), attends: true, begins: false },
            Said::default(),
        ] {
            let text = said.clone().write(one);
            assert_eq!(Said::read(&text, other), Some(said), "{text}");
            assert_eq!(Said::read(&text, one), None, "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_means_anything_and_what_fits_does_not() {
        for (count, fits) in [(190, true), (250, false)] {
            let executions: BTreeSet<ExecutionId> = (0..count).map(id).collect();
            let said = Said { news: News { executions, ..News::default() }, attends: true, begins: false };
            let text = said.clone().write(Uuid::nil());
            assert!(text.len() < 8_000, "{}", text.len());
            let read = Said::read(&text, Uuid::max()).unwrap();
            assert_eq!(read == said, fits, "{count}");
            assert_eq!((read.news.anything, read.attends), (!fits, true), "{count}");
        }
    }

    #[test]
    fn what_another_release_says_means_anything_and_that_it_may_wait() {
        let before = Uuid::from_u128(3).simple().to_string();
        for text in [&before, "", "{}", r#"{"from":"x","moons":[1]}"#, r#"{"from":"x","executions":["x"]}"#] {
            let said = Said::read(text, Uuid::from_u128(4)).unwrap();
            assert!(said.news.anything && said.attends, "{text}: {said:?}");
        }
        assert_eq!(Said::read(&before, Uuid::from_u128(3)), None);
    }
}
