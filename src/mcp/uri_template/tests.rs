//! Which URIs a template may have been expanded to.

use super::may_expand_to;

#[test]
fn a_simple_variable_stands_for_one_part_of_a_path() {
    assert!(may_expand_to("test://template/{id}/data", "test://template/17/data"));
    assert!(may_expand_to("test://template/{id}/data", "test://template/a%2Fb/data"));
    assert!(!may_expand_to("test://template/{id}/data", "test://template/17/other"));
    assert!(!may_expand_to("test://template/{id}/data", "test://template/1/2/data"));
    assert!(!may_expand_to("test://template/{id}", "test://template/1?page=2"));
    assert!(may_expand_to("{scheme}://x", "file://x"));
}

#[test]
fn reserved_and_repeated_variables_stand_for_anything() {
    assert!(may_expand_to("file:///{+path}", "file:///a/b/c.txt"));
    assert!(may_expand_to("db://rows{?page,size}", "db://rows?page=1&size=2"));
    assert!(may_expand_to("db://rows{?page,size}", "db://rows"));
    assert!(may_expand_to("repo://{owner}/{name}{/path*}", "repo://o/n/src/main.rs"));
    assert!(!may_expand_to("repo://{owner}/{name}/x{/path*}", "repo://o/n/y"));
}

#[test]
fn several_variables_next_to_each_other_are_tried_every_way() {
    assert!(may_expand_to("x:{a}-{b}", "x:1-2-3"));
    assert!(may_expand_to("x:{a}{b}", "x:"));
    assert!(!may_expand_to("x:{a}-{b}", "x:12"));
}

#[test]
fn a_template_without_variables_or_a_malformed_one_matches_only_itself() {
    assert!(may_expand_to("x:plain", "x:plain"));
    assert!(!may_expand_to("x:plain", "x:plainer"));
    assert!(may_expand_to("x:{open", "x:{open"));
    assert!(!may_expand_to("x:{open", "x:1"));
    assert!(!may_expand_to("x:{}", "x:1"));
}

#[test]
fn an_endless_uri_costs_nothing() {
    let long = format!("x:{}", "a".repeat(1 << 20));
    assert!(!may_expand_to("x:{a}{b}{c}", &long));
}
