//! The layer that decides a setting, by what is written.

use super::sources::{Layer, ToolPlace};
use super::{Overrides, load};

#[test]
fn the_nearest_table_that_says_something_decides() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    let text = "[server]\nresponse = \"json\"\n[defaults]\nwait = \"20s\"\n[defaults.timeout]\nattempt = \"5m\"\n\
                [servers.github]\ncommand = \"npx\"\nwait = \"30s\"\n[servers.github.tools.create_issue]\n\
                delivery = \"at_least_once\"\nretry = { max_attempts = 5 }\n[tools.thumb]\ncommand = [\"true\"]\nwait = \"1s\"\n";
    std::fs::write(&file, text).unwrap();
    let loaded = load(Some(&file), &Overrides::default(), &Default::default()).ok().unwrap();
    let (issue, other) = (ToolPlace::Server("github", "create_issue"), ToolPlace::Server("github", "other"));
    for (place, setting, layer) in [
        (issue, "delivery", Layer::Tool),
        (issue, "retry.max_attempts", Layer::Tool),
        (issue, "retry.jitter", Layer::BuiltIn),
        (issue, "wait", Layer::Server),
        (issue, "timeout.attempt", Layer::Defaults),
        (issue, "timeout.total", Layer::BuiltIn),
        (issue, "response", Layer::Defaults),
        (other, "delivery", Layer::BuiltIn),
        (other, "wait", Layer::Server),
        (ToolPlace::Own("thumb"), "wait", Layer::Tool),
        (ToolPlace::Own("demo_echo"), "wait", Layer::Defaults),
        (ToolPlace::Worker("ocr"), "idempotency.ttl", Layer::BuiltIn),
    ] {
        assert_eq!(loaded.layer(place, setting), layer, "{place:?} {setting}");
    }
}
