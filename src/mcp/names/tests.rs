//! Exposed names.

use super::*;

#[test]
fn names_carry_their_server() {
    assert_eq!(exposed(Naming::Prefixed("github__"), "create_issue"), "github__create_issue");
    assert_eq!(exposed(Naming::Prefixed(""), "create_issue"), "create_issue");
    assert_eq!(exposed(Naming::Unchanged, "create_issue"), "create_issue");
}

#[test]
fn long_names_are_shortened_the_same_way_each_time() {
    let long = "t".repeat(80);
    let name = exposed(Naming::Prefixed("server__"), &long);
    assert_eq!(name.chars().count(), 64);
    assert!(name.starts_with("server__ttt"));
    assert_eq!(name, exposed(Naming::Prefixed("server__"), &long));
    assert_ne!(name, exposed(Naming::Prefixed("server__"), &"t".repeat(81)));
    assert_eq!(exposed(Naming::Prefixed(""), &long).chars().count(), 64);
    assert_eq!(exposed(Naming::Unchanged, &long), long);
    assert_eq!(exposed(Naming::Prefixed(""), &"t".repeat(64)), "t".repeat(64));
    assert_eq!(exposed(Naming::Prefixed("s__"), &"é".repeat(80)).chars().count(), 64);
}

#[test]
fn the_earlier_server_keeps_a_name_and_the_loser_is_reported() {
    let servers = [
        ServerTools { server: "a", naming: Naming::Prefixed(""), tools: vec!["x", "durable_result", "y"] },
        ServerTools { server: "b", naming: Naming::Prefixed(""), tools: vec!["y", "z", "z"] },
        ServerTools { server: "c", naming: Naming::Prefixed("c__"), tools: vec!["y"] },
    ];
    let assignment = assign(&servers, &["durable_result"]);
    let names: Vec<&str> = assignment.tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["x", "y", "z", "c__y"]);
    let lost: Vec<_> = assignment.collisions.iter().map(|collision| (collision.kept, collision.lost)).collect();
    let expected = [(None, ("a", "durable_result")), (Some(("a", "y")), ("b", "y")), (Some(("b", "z")), ("b", "z"))];
    assert_eq!(lost, expected);
}

#[test]
fn a_prefix_can_make_a_collision_too() {
    let servers = [
        ServerTools { server: "a", naming: Naming::Prefixed("a__"), tools: vec!["b__c"] },
        ServerTools { server: "a__b", naming: Naming::Prefixed("a__b__"), tools: vec!["c"] },
    ];
    assert_eq!(assign(&servers, &[]).collisions.len(), 1);
}
