//! `docs/states.md` says what the code does: the states, the table of transitions, the events.

use super::*;

const STATES: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/states.md"));

/// The cells of the first table below the heading `## {heading}`, without its header; back-ticks are left out.
fn table(heading: &str) -> Vec<Vec<String>> {
    let section = STATES.split("\n## ").find(|section| section.lines().next() == Some(heading));
    let section = section.unwrap_or_else(|| panic!("docs/states.md has no section {heading:?}"));
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
    rows.skip(2).map(cells).collect()
}

#[test]
fn the_states_are_listed_in_order_with_whether_they_end() {
    let found: Vec<(String, String)> =
        table("States").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let expect: Vec<(String, String)> = State::ALL
        .into_iter()
        .map(|state| {
            let ends = match (state.is_ended(), state.is_settled()) {
                (true, _) => "yes",
                (false, true) => "needs a decision",
                (false, false) => "no",
            };
            (state.as_str().into(), ends.into())
        })
        .collect();
    assert_eq!(found, expect);
}

#[test]
fn the_table_of_transitions_is_the_codes() {
    let name = |state: Option<State>| state.map_or("(new)", State::as_str).to_string();
    let found: Vec<[String; 3]> =
        table("Transitions").into_iter().map(|row| [row[0].clone(), row[1].clone(), row[2].clone()]).collect();
    let expect: Vec<[String; 3]> = transitions::TRANSITIONS
        .iter()
        .map(|(from, event, to)| [name(*from), event.to_string(), name(Some(*to))])
        .collect();
    assert_eq!(found, expect);
}

#[test]
fn the_diagram_has_exactly_the_arrows_of_the_table() {
    let mut found: Vec<[&str; 3]> = Vec::new();
    for line in STATES.lines().map(str::trim) {
        let Some((from, rest)) = line.split_once(" --> ") else { continue };
        let Some((to, events)) = rest.split_once(" : ") else { continue };
        found.extend(events.split(", ").map(|event| [from, event, to]));
    }
    let name = |state: Option<State>| state.map_or("[*]", State::as_str);
    let mut expect: Vec<[&str; 3]> =
        transitions::TRANSITIONS.iter().map(|(from, event, to)| [name(*from), *event, name(Some(*to))]).collect();
    found.sort();
    expect.sort();
    assert_eq!(found, expect);
}

#[test]
fn every_event_is_explained_in_order() {
    let rows = table("Events");
    let found: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(found, Event::NAMES);
    assert!(rows.iter().all(|row| row[1].len() > 20), "each event has a meaning");
    let notes: Vec<&str> =
        rows.iter().filter(|row| row[1].contains("changes nothing")).map(|row| row[0].as_str()).collect();
    assert_eq!(notes, transitions::NOTES);
}
