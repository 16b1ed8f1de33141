//! The table of revisions and the negotiation.

use super::*;

#[test]
fn the_table_is_in_the_order_of_the_enum_and_of_time() {
    for (index, facts) in REVISIONS.iter().enumerate() {
        assert_eq!(facts.revision as usize, index);
        assert_eq!(Revision::find(facts.name), Some(facts.revision));
        assert_eq!(facts.revision.name(), facts.name);
    }
    assert!(REVISIONS.windows(2).all(|pair| pair[0].name < pair[1].name && pair[0].revision < pair[1].revision));
}

#[test]
fn a_known_legacy_revision_is_answered_and_anything_else_gets_the_latest_legacy_one() {
    for name in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(Revision::negotiate(name).name(), name);
    }
    for name in ["2026-07-28", "2024-10-07", "1900-01-01", "2099-01-01", "", "latest", "2025-11-25 "] {
        assert_eq!(Revision::negotiate(name), Revision::LATEST_LEGACY, "{name}");
    }
}

#[test]
fn only_the_last_revision_is_modern() {
    assert_eq!(modern_names(), ["2026-07-28"]);
}

#[test]
fn batches_end_with_2025_06_18() {
    let with: Vec<&str> = REVISIONS.iter().filter(|facts| facts.batches).map(|facts| facts.name).collect();
    assert_eq!(with, ["2024-11-05", "2025-03-26"]);
}

#[test]
fn what_came_and_went_is_in_the_right_revisions() {
    let names = |has: fn(&Facts) -> bool| -> Vec<&str> {
        REVISIONS.iter().filter(|facts| has(facts)).map(|facts| facts.name).collect()
    };
    assert_eq!(names(|facts| facts.priming_event), ["2025-11-25"]);
    assert_eq!(names(|facts| facts.tasks == Tasks::Core), ["2025-11-25"]);
    assert_eq!(names(|facts| facts.tasks == Tasks::Extension), ["2026-07-28"]);
    assert_eq!(names(|facts| !facts.progress_message), ["2024-11-05"]);
    assert_eq!(names(|facts| facts.result_type), ["2026-07-28"]);
    assert_eq!(names(|facts| !facts.server_requests), ["2026-07-28"]);
    assert_eq!(names(|facts| facts.structured_content == StructuredContent::Object), ["2025-06-18", "2025-11-25"]);
}
