//! Lists of several upstreams as one: order, collisions, namespaces.

use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;
use crate::engine::catalog::{Catalog, Listed};
use crate::model::revision::Revision;

fn listed(items: &[serde_json::Value]) -> Listed {
    Listed { items: items.iter().map(|item| to_raw_value(item).unwrap()).collect(), cache: None }
}

fn resource(uri: &str) -> serde_json::Value {
    json!({"uri": uri, "name": "n"})
}

fn catalog() -> Catalog {
    let catalog = Catalog::new(&["first".to_owned(), "second".to_owned()]);
    let second = Offer {
        known: true,
        revision: Some(Revision::V2026_07_28),
        resources: listed(&[resource("x:both"), resource("x:second")]),
        templates: listed(&[json!({"uriTemplate": "y:{id}", "name": "n"})]),
        prompts: listed(&[json!({"name": "greet", "icons": []})]),
        capabilities: Some(to_raw_value(&json!({"resources": {"subscribe": true}, "prompts": {}})).unwrap().into()),
        ..Offer::default()
    };
    catalog.publish("second", second);
    let first = Offer {
        known: true,
        revision: Some(Revision::V2025_11_25),
        resources: listed(&[resource("x:first"), resource("x:both"), json!({"name": "no uri"})]),
        prompts: listed(&[json!({"name": "greet", "title": "Greet"})]),
        capabilities: Some(to_raw_value(&json!({"completions": {}, "logging": {}})).unwrap().into()),
        ..Offer::default()
    };
    catalog.publish("first", first);
    catalog
}

fn exposure() -> Exposure {
    let prefixes = [("first".to_owned(), "first__".to_owned()), ("second".to_owned(), String::new())];
    let patterns = [("few".to_owned(), vec!["first__*".to_owned()]), ("none".to_owned(), vec!["other".to_owned()])];
    Exposure { prefixes: prefixes.into(), patterns: patterns.into() }
}

fn exposed(offering: &Offering, kind: Kind) -> Vec<&str> {
    offering.entries(kind).iter().map(|entry| entry.exposed.as_str()).collect()
}

#[test]
fn lists_are_merged_in_the_order_of_configuration_and_the_later_one_of_a_name_is_left_out() {
    let (offering, collisions) = Offering::of(&catalog().listing(), &exposure(), "default");
    assert_eq!(exposed(&offering, Kind::Resources), ["x:first", "x:both", "x:second"]);
    assert_eq!(exposed(&offering, Kind::Prompts), ["first__greet", "greet"]);
    assert_eq!(offering.entries(Kind::Prompts)[0].object, r#"{"name":"first__greet","title":"Greet"}"#);
    assert_eq!(offering.find(Kind::Prompts, "first__greet").unwrap().own, "greet");
    let [collision] = collisions.as_slice() else { panic!("{collisions:?}") };
    assert_eq!((collision.exposed.as_str(), &*collision.kept, &*collision.lost), ("x:both", "first", "second"));
    let all = Declared { resources: true, subscribe: true, prompts: true, completions: true, logging: true };
    assert_eq!(offering.declared, all);
}

#[test]
fn a_namespace_sees_what_its_patterns_name_and_shares_no_collision_with_what_it_does_not_see() {
    let listing = catalog().listing();
    let (few, collisions) = Offering::of(&listing, &exposure(), "few");
    assert_eq!(exposed(&few, Kind::Resources), ["x:first", "x:both"]);
    assert_eq!(exposed(&few, Kind::Prompts), ["first__greet"]);
    assert_eq!(collisions, []);
    assert!(!few.declared.subscribe && few.declared.completions);
    let (none, _) = Offering::of(&listing, &exposure(), "none");
    assert_eq!(none.declared, Declared::default());
    assert!(none.sources.is_empty() && none.owners_of("x:first").is_empty());
}

#[test]
fn a_resource_is_looked_for_where_it_is_listed_then_by_template_then_everywhere() {
    let (offering, _) = Offering::of(&catalog().listing(), &exposure(), "default");
    let owners = |uri: &str| offering.owners_of(uri).iter().map(|source| source.name.as_str()).collect::<Vec<_>>();
    assert_eq!(owners("x:second"), ["second", "first"]);
    assert_eq!(owners("y:7"), ["second", "first"]);
    assert_eq!(owners("z:unheard-of"), ["first", "second"]);
    let templates =
        |uri: &str| offering.owners_of_template(uri).iter().map(|source| source.name.as_str()).collect::<Vec<_>>();
    assert_eq!(templates("y:{id}"), ["second"]);
    assert_eq!(templates("z:{id}"), ["first"]);
}

#[test]
fn marks_change_with_their_list_alone() {
    let catalog = catalog();
    let (before, _) = Offering::of(&catalog.listing(), &exposure(), "default");
    let mut first = catalog.listing().offer("first").unwrap().clone();
    first.prompts = listed(&[json!({"name": "greet", "title": "Greet!"})]);
    catalog.publish("first", first);
    let (after, _) = Offering::of(&catalog.listing(), &exposure(), "default");
    assert_eq!((after.marks.tools, after.marks.resources), (before.marks.tools, before.marks.resources));
    assert_ne!(after.marks.prompts, before.marks.prompts);
    assert_eq!(after.mark(Kind::Resources), before.mark(Kind::Resources));
}
