//! The resources, resource templates and prompts of all upstreams as one namespace sees them: merged in the order of
//! configuration, byte for byte, each URI and name once. Reads the catalog's picture; asks no upstream.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use super::exposure::Exposure;
use super::splice;
use super::uri_template::may_expand_to;
use crate::engine::catalog::{CacheHint, Listing, Offer};
use crate::engine::client::string_member;
use crate::model::revision::Era;

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Resources,
    Templates,
    Prompts,
}

impl Kind {
    /// The method that lists them.
    pub fn method(self) -> &'static str {
        match self {
            Kind::Resources => "resources/list",
            Kind::Templates => "resources/templates/list",
            Kind::Prompts => "prompts/list",
        }
    }

    /// The member of the result that holds them.
    pub fn member(self) -> &'static str {
        match self {
            Kind::Resources => "resources",
            Kind::Templates => "resourceTemplates",
            Kind::Prompts => "prompts",
        }
    }

    /// The member of each object that tells it from the others.
    fn key(self) -> &'static str {
        match self {
            Kind::Resources => "uri",
            Kind::Templates => "uriTemplate",
            Kind::Prompts => "name",
        }
    }
}

/// One entry of a list.
#[derive(Debug)]
pub struct Entry {
    /// Whose it is, as an index into [`Offering::sources`].
    pub source: usize,
    /// The URI, the template, or the prompt's own name.
    pub own: String,
    /// What clients call it by.
    pub exposed: String,
    /// The object as clients see it.
    pub object: String,
}

/// One upstream that a namespace may see.
#[derive(Debug)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// The era it speaks, where that is known.
    pub era: Option<Era>,
    /// What it declared.
    pub declared: Declared,
    /// True until something was heard of it.
    pub is_unknown: bool,
}

/// What an upstream declared besides tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub resources: bool,
    pub subscribe: bool,
    pub prompts: bool,
    pub completions: bool,
    pub logging: bool,
}

impl Declared {
    fn of(offer: &Offer) -> Declared {
        let listed = !offer.resources.items.is_empty() || !offer.templates.items.is_empty();
        Declared {
            resources: listed || offer.declares(&["resources"]),
            subscribe: offer.declares(&["resources", "subscribe"]),
            prompts: !offer.prompts.items.is_empty() || offer.declares(&["prompts"]),
            completions: offer.declares(&["completions"]),
            logging: offer.declares(&["logging"]),
        }
    }

    fn and(self, other: Declared) -> Declared {
        Declared {
            resources: self.resources || other.resources,
            subscribe: self.subscribe || other.subscribe,
            prompts: self.prompts || other.prompts,
            completions: self.completions || other.completions,
            logging: self.logging || other.logging,
        }
    }
}

/// What tells whether a list is still the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub tools: u64,
    pub resources: u64,
    pub prompts: u64,
}

/// Everything a namespace sees besides tools.
#[derive(Debug, Default)]
pub struct Offering {
    /// The picture it was made of.
    pub version: u64,
    /// The upstreams, in the order of configuration.
    pub sources: Vec<Source>,
    /// What any of them declared.
    pub declared: Declared,
    /// What the lists were when this was made.
    pub marks: Marks,
    resources: List,
    templates: List,
    prompts: List,
}

#[derive(Debug, Default)]
struct List {
    entries: Vec<Entry>,
    by_exposed: HashMap<String, usize>,
    hints: Vec<Option<CacheHint>>,
    mark: u64,
}

/// An entry that is left out since an earlier upstream has its name or URI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Collision {
    /// Which list.
    pub kind: Kind,
    /// What both are called.
    pub exposed: String,
    /// Whose is shown.
    pub kept: String,
    /// Whose is left out.
    pub lost: String,
}

impl Offering {
    /// What `namespace` sees of `listing`, and what had to be left out.
    pub fn of(listing: &Listing, exposure: &Exposure, namespace: &str) -> (Offering, Vec<Collision>) {
        let mut offering = Offering { version: listing.version, ..Offering::default() };
        let mut collisions = Vec::new();
        for (name, offer) in &listing.upstreams {
            let shows_resources = exposure.shows_resources(namespace, name, listing);
            let source = offering.sources.len();
            let mut declared = Declared::of(offer);
            if shows_resources {
                offering.resources.add(Kind::Resources, offer, (source, name), |own| Some(own.to_owned()));
                offering.templates.add(Kind::Templates, offer, (source, name), |own| Some(own.to_owned()));
            } else {
                declared = Declared { resources: false, subscribe: false, completions: false, ..declared };
            }
            let before = offering.prompts.entries.len();
            offering.prompts.add(Kind::Prompts, offer, (source, name), |own| {
                let exposed = exposure.prompt(name, own).into_owned();
                exposure.shows_prompt(namespace, &exposed).then_some(exposed)
            });
            let shows_prompts = offering.prompts.entries.len() > before;
            if !shows_resources && !shows_prompts {
                continue;
            }
            declared.prompts &= shows_resources || shows_prompts;
            offering.declared = offering.declared.and(declared);
            let era = offer.revision.map(|revision| revision.era());
            offering.sources.push(Source { name: name.clone(), era, declared, is_unknown: !offer.known });
        }
        let sources = &offering.sources;
        for (kind, list) in [
            (Kind::Resources, &mut offering.resources),
            (Kind::Templates, &mut offering.templates),
            (Kind::Prompts, &mut offering.prompts),
        ] {
            collisions.extend(list.settle(kind, sources));
        }
        offering.marks = Marks {
            tools: mark(
                listing
                    .tools
                    .iter()
                    .filter(|tool| tool.service.is_offered_in(namespace))
                    .map(|tool| (tool.exposed.as_str(), tool.definition.get())),
            ),
            resources: offering.resources.mark ^ offering.templates.mark.rotate_left(1),
            prompts: offering.prompts.mark,
        };
        (offering, collisions)
    }

    /// The entries of a list.
    pub fn entries(&self, kind: Kind) -> &[Entry] {
        &self.list(kind).entries
    }

    /// What tells whether a list is still the one that a cursor was written for.
    pub fn mark(&self, kind: Kind) -> u64 {
        self.list(kind).mark
    }

    /// The entry of this exposed name or URI.
    pub fn find(&self, kind: Kind, exposed: &str) -> Option<&Entry> {
        let list = self.list(kind);
        list.by_exposed.get(exposed).map(|at| &list.entries[*at])
    }

    /// What each upstream with entries in a list says about keeping it.
    pub fn hints(&self, kind: Kind) -> &[Option<CacheHint>] {
        &self.list(kind).hints
    }

    /// Who may have the resource, best guess first: who lists it; whose template it may come from; then every upstream
    /// with resources, in the order of configuration.
    pub fn owners_of(&self, uri: &str) -> Vec<&Source> {
        let listed = self.find(Kind::Resources, uri).map(|entry| entry.source);
        let expanded = self.templates.entries.iter().filter(|entry| may_expand_to(&entry.own, uri));
        let any = self.sources.iter().enumerate().filter(|(_, source)| source.declared.resources || source.is_unknown);
        let all = listed.into_iter().chain(expanded.map(|entry| entry.source)).chain(any.map(|(at, _)| at));
        let mut seen = HashSet::new();
        all.filter(|at| seen.insert(*at)).map(|at| &self.sources[at]).collect()
    }

    /// Who has the template: who lists it, else whose resource is called so, else everybody with completions.
    pub fn owners_of_template(&self, template: &str) -> Vec<&Source> {
        match self.find(Kind::Templates, template).or_else(|| self.find(Kind::Resources, template)) {
            Some(entry) => vec![&self.sources[entry.source]],
            None => self.sources.iter().filter(|source| source.declared.completions).collect(),
        }
    }

    fn list(&self, kind: Kind) -> &List {
        match kind {
            Kind::Resources => &self.resources,
            Kind::Templates => &self.templates,
            Kind::Prompts => &self.prompts,
        }
    }
}

impl List {
    fn add(
        &mut self,
        kind: Kind,
        offer: &Offer,
        (source, upstream): (usize, &str),
        exposed: impl Fn(&str) -> Option<String>,
    ) {
        let listed = match kind {
            Kind::Resources => &offer.resources,
            Kind::Templates => &offer.templates,
            Kind::Prompts => &offer.prompts,
        };
        for item in listed.items.iter() {
            let Some(own) = string_member(item.get(), kind.key()) else {
                tracing::warn!(
                    upstream,
                    list = kind.method(),
                    "an entry was left out: it has no readable {}",
                    kind.key()
                );
                continue;
            };
            let Some(exposed) = exposed(&own) else { continue };
            let object = match kind == Kind::Prompts && exposed != own {
                true => splice::renamed_tool(item, &exposed).map(String::from_raw),
                false => Some(item.get().to_owned()),
            };
            self.entries.extend(object.map(|object| Entry { source, own, exposed, object }));
        }
        if !listed.items.is_empty() {
            self.hints.push(listed.cache);
        }
    }

    /// Leaves out what another one is called already; returns that.
    fn settle(&mut self, kind: Kind, sources: &[Source]) -> Vec<Collision> {
        let mut collisions = Vec::new();
        let entries = std::mem::take(&mut self.entries);
        for entry in entries {
            match self.by_exposed.get(&entry.exposed) {
                Some(kept) => collisions.push(Collision {
                    kind,
                    kept: sources[self.entries[*kept].source].name.clone(),
                    lost: sources[entry.source].name.clone(),
                    exposed: entry.exposed,
                }),
                None => {
                    self.by_exposed.insert(entry.exposed.clone(), self.entries.len());
                    self.entries.push(entry);
                }
            }
        }
        self.mark = mark(self.entries.iter().map(|entry| (sources[entry.source].name.as_str(), entry.object.as_str())));
        collisions
    }
}

/// The same for the same list, in every process of this build.
fn mark<'e>(entries: impl Iterator<Item = (&'e str, &'e str)>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in entries {
        entry.hash(&mut hasher);
    }
    hasher.finish()
}

trait FromRaw {
    fn from_raw(raw: Box<RawValue>) -> Self;
}

impl FromRaw for String {
    fn from_raw(raw: Box<RawValue>) -> String {
        let text: Box<str> = raw.into();
        text.into_string()
    }
}

/// The offerings of the newest picture, made once per namespace.
#[derive(Debug, Default)]
pub struct Offerings {
    made: Mutex<(u64, HashMap<String, Arc<Offering>>)>,
    reported: Mutex<HashSet<Collision>>,
}

/// Namespaces whose offering is kept; more are made anew each time.
const KEPT_MAX: usize = 256;
/// Collisions that are remembered as reported.
const REPORTED_MAX: usize = 4_096;

impl Offerings {
    /// What `namespace` sees of `listing`.
    pub fn of(&self, listing: &Listing, exposure: &Exposure, namespace: &str) -> Arc<Offering> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.0 != listing.version || made.1.len() >= KEPT_MAX {
            *made = (listing.version, HashMap::new());
        }
        if let Some(offering) = made.1.get(namespace) {
            return offering.clone();
        }
        let (offering, collisions) = Offering::of(listing, exposure, namespace);
        let offering = Arc::new(offering);
        made.1.insert(namespace.to_owned(), offering.clone());
        drop(made);
        self.report(collisions);
        offering
    }

    /// Says each collision once.
    fn report(&self, collisions: Vec<Collision>) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        for collision in collisions {
            if reported.len() >= REPORTED_MAX || !reported.insert(collision.clone()) {
                continue;
            }
            let Collision { kind, exposed, kept, lost } = &collision;
            let list = kind.method();
            tracing::warn!(upstream = lost, list, "{exposed} was left out: {kept} has one of that name");
        }
    }
}
