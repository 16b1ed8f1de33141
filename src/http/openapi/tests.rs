//! The document against the routes: one that is missing on either side fails.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

/// The method and path of every `.route(…)` below `src/http`, read from the sources: a router does not tell its routes.
fn routes_in(folder: &Path, found: &mut BTreeSet<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            routes_in(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            for call in text.split(".route(").skip(1) {
                let (address, methods) = route(call).unwrap_or_else(|| panic!("{name}: .route({call:.80}"));
                found.extend(methods.into_iter().map(|method| (method, address.clone())));
            }
        }
    }
}

/// `"/path", get(one).post(two))…` as the path and the methods; `None` when it is written in another way.
fn route(call: &str) -> Option<(String, Vec<String>)> {
    let rest = call.trim_start().strip_prefix('"')?;
    let (address, rest) = rest.split_once('"')?;
    let mut rest = rest.trim_start().strip_prefix(',')?.trim_start();
    let mut methods = Vec::new();
    loop {
        let (method, after) = rest.split_once('(')?;
        let method = method.trim().trim_start_matches('.');
        ["get", "post", "put", "delete", "patch"].contains(&method).then_some(())?;
        methods.push(method.to_owned());
        rest = after.split_once(')')?.1.trim_start();
        if !rest.starts_with('.') {
            return Some((address.to_owned(), methods));
        }
    }
}

#[test]
fn every_route_is_in_the_document_and_nothing_else() {
    let mut served = BTreeSet::new();
    routes_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http"), &mut served);
    let document: serde_json::Value = serde_json::from_str(&document().to_json().unwrap()).unwrap();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        described.extend(item.as_object().unwrap().keys().map(|method| (method.clone(), path.clone())));
    }
    assert!(served.len() >= 7, "{served:?}");
    assert_eq!(served, described);
}

#[test]
fn every_operation_has_an_id_of_its_own() {
    let document: serde_json::Value = serde_json::from_str(&document().to_json().unwrap()).unwrap();
    let mut ids = BTreeSet::new();
    for operation in document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values())
    {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{id} is there twice");
    }
    assert!(ids.len() > 20);
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    let text = document().to_json().unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut references = 0;
    for part in text.split("\"$ref\":\"").skip(1) {
        let pointer = part.split('"').next().unwrap().trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{pointer}");
        references += 1;
    }
    assert!(references > 5);
}

#[test]
fn a_route_is_read_in_the_ways_it_is_written() {
    let read = |text: &str| route(text).map(|(path, methods)| format!("{path} {}", methods.join(" ")));
    assert_eq!(read("\"/a\", get(one))").as_deref(), Some("/a get"));
    assert_eq!(read("\n  \"/a/{id}\",\n get(one)\n .post(two),\n)").as_deref(), Some("/a/{id} get post"));
    assert_eq!(read("PATH, get(one))"), None);
    assert_eq!(read("\"/a\", any(one))"), None);
}

/// The page's types are made from this file, which nobody has to start a server for.
#[test]
fn the_file_that_the_dashboard_is_typed_by_is_this_document() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboard/openapi.json");
    let text = document().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert!(known == text, "the routes have changed: run this test with BLESS=1, then `npm run types` in dashboard/");
}
