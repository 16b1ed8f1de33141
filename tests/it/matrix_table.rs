//! `docs/mcp-matrix.toml`: what is expected in every cell of the matrix, as rules of which the first that fits counts.
//! Reads it, finds the rule of a cell, and writes the rules for the page. Runs no cell.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// All revisions, oldest first.
pub const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// What a client may meet.
pub const BEHAVIOURS: [&str; 12] = [
    "plain",
    "tool-error",
    "structured",
    "binary",
    "progress",
    "cancel",
    "time-out-cancel",
    "elicitation",
    "disconnect-and-return",
    "handle-and-result",
    "task-and-result",
    "task-cancel",
];

/// How a client gets to the program: HTTP to `serve`, stdio, or the two HTTP+SSE endpoints that only the first revision has.
pub const WAYS: [&str; 4] = ["serve", "wrap", "connect", "sse"];

/// How the program gets to the server.
pub const TRANSPORTS: [&str; 2] = ["stdio", "http"];

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    pub behaviour: &'static str,
    pub client: &'static str,
    pub by: &'static str,
    pub upstream: &'static str,
    pub over: &'static str,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { behaviour, client, by, upstream, over } = self;
        write!(f, "{behaviour}: client {client} by {by}, upstream {upstream} over {over}")
    }
}

/// Every client on every way that its revision has.
fn clients() -> Vec<(&'static str, &'static str)> {
    let ways = REVISIONS.into_iter().flat_map(|client| WAYS.map(|by| (client, by)));
    ways.filter(|(client, by)| *by != "sse" || *client == REVISIONS[0]).collect()
}

/// Every cell in front of one upstream.
pub fn cells_before(upstream: &'static str, over: &'static str) -> Vec<Cell> {
    let of_client = |(client, by)| BEHAVIOURS.map(|behaviour| Cell { behaviour, client, by, upstream, over });
    clients().into_iter().flat_map(of_client).collect()
}

/// Every cell there is.
pub fn all_cells() -> Vec<Cell> {
    let upstreams = REVISIONS.into_iter().flat_map(|upstream| TRANSPORTS.map(|over| (upstream, over)));
    upstreams.flat_map(|(upstream, over)| cells_before(upstream, over)).collect()
}

/// The rules, by behaviour.
#[derive(Debug)]
pub struct Table(BTreeMap<String, Vec<Rule>>);

/// What happens where. A condition that is absent holds everywhere.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// `2025-11-25`, `< 2025-06-18`, `>= 2025-03-26`.
    client: Option<String>,
    by: Option<Vec<String>>,
    upstream: Option<String>,
    over: Option<Vec<String>>,
    /// What is observed, in the words of the test.
    pub outcome: String,
    /// The sections of the specification, as `revision/path#section`; `{client}` and `{upstream}` are those of the cell.
    pub spec: Vec<String>,
    /// What the specification leaves open, and who decided.
    pub why: Option<String>,
}

impl Table {
    pub fn read() -> Table {
        let path = path();
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Table::parse(&text).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()))
    }

    /// # Errors
    /// Says what is wrong: no TOML, an unknown name, a rule that no cell needs, a cell without a rule.
    pub fn parse(text: &str) -> Result<Table, String> {
        let rules: BTreeMap<String, Vec<Rule>> = toml::from_str(text).map_err(|error| error.to_string())?;
        let table = Table(rules);
        if let Some(name) = table.0.keys().find(|name| !BEHAVIOURS.contains(&name.as_str())) {
            return Err(format!("[[{name}]] is no behaviour of the test"));
        }
        for (behaviour, rules) in &table.0 {
            for (at, rule) in rules.iter().enumerate() {
                rule.check().map_err(|wrong| format!("[[{behaviour}]] {}: {wrong}", at + 1))?;
            }
        }
        let mut used = BTreeMap::<(&str, usize), usize>::new();
        for cell in all_cells() {
            let at = table.place(&cell).ok_or_else(|| format!("no rule for {cell}"))?;
            *used.entry((cell.behaviour, at)).or_default() += 1;
        }
        for (behaviour, rules) in &table.0 {
            if let Some(at) = (0..rules.len()).find(|at| !used.contains_key(&(behaviour, *at))) {
                return Err(format!("[[{behaviour}]] {}: no cell gets to this rule", at + 1));
            }
        }
        Ok(table)
    }

    /// The rule of a cell.
    pub fn rule(&self, cell: &Cell) -> &Rule {
        let at = self.place(cell).expect("the table was read, so that every cell has a rule");
        &self.0[cell.behaviour][at]
    }

    fn place(&self, cell: &Cell) -> Option<usize> {
        self.0.get(cell.behaviour)?.iter().position(|rule| rule.fits(cell))
    }

    /// The rules as a table of the page.
    pub fn page(&self) -> String {
        let mut out =
            String::from("| what | client | by | upstream | over | outcome | says |\n|---|---|---|---|---|---|---|\n");
        for behaviour in BEHAVIOURS {
            for rule in &self.0[behaviour] {
                let any = |words: Option<String>| words.unwrap_or_else(|| "any".to_owned());
                let list = |names: &Option<Vec<String>>| any(names.as_ref().map(|names| names.join(", ")));
                out.push_str(&format!(
                    "| {behaviour} | {} | {} | {} | {} | {} | {} |\n",
                    any(rule.client.clone()),
                    list(&rule.by),
                    any(rule.upstream.clone()),
                    list(&rule.over),
                    rule.outcome,
                    rule.says(),
                ));
            }
        }
        out
    }
}

impl Rule {
    fn fits(&self, cell: &Cell) -> bool {
        let revision = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| holds(wanted, is));
        let name = |wanted: &Option<Vec<String>>, is: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|name| name == is))
        };
        revision(&self.client, cell.client)
            && revision(&self.upstream, cell.upstream)
            && name(&self.by, cell.by)
            && name(&self.over, cell.over)
    }

    fn check(&self) -> Result<(), String> {
        for condition in [&self.client, &self.upstream].into_iter().flatten() {
            if !REVISIONS.contains(&compared(condition).1) {
                return Err(format!("{condition:?} names no revision"));
            }
        }
        for (names, known) in [(&self.by, &WAYS[..]), (&self.over, &TRANSPORTS[..])] {
            if let Some(name) = names.iter().flatten().find(|name| !known.contains(&name.as_str())) {
                return Err(format!("{name:?} is none of {known:?}"));
            }
        }
        if self.outcome.is_empty() || self.spec.is_empty() {
            return Err("a rule has an outcome and a section of the specification".to_owned());
        }
        let heads = ["{client}/", "{upstream}/", "seps/", "ext-tasks/"];
        let names_place =
            |spec: &&String| spec.contains('#') && (heads.iter().chain(&REVISIONS).any(|head| spec.starts_with(head)));
        match self.spec.iter().find(|spec| !names_place(spec)) {
            Some(spec) => Err(format!("{spec:?} names no section: revision/path#section")),
            None => Ok(()),
        }
    }

    fn says(&self) -> String {
        let sections: Vec<String> = self.spec.iter().map(|section| format!("`{section}`")).collect();
        let sections = sections.join(", ");
        match &self.why {
            Some(why) => format!("{sections}; {why}"),
            None => sections,
        }
    }
}

/// The comparison and the revision of a condition.
fn compared(condition: &str) -> (&str, &str) {
    for comparison in ["<=", ">=", "<", ">"] {
        if let Some(revision) = condition.strip_prefix(comparison) {
            return (comparison, revision.trim());
        }
    }
    ("", condition)
}

fn holds(condition: &str, is: &str) -> bool {
    // Names of revisions sort as their dates.
    match compared(condition) {
        ("<=", revision) => is <= revision,
        (">=", revision) => is >= revision,
        ("<", revision) => is < revision,
        (">", revision) => is > revision,
        (_, revision) => is == revision,
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

fn path() -> PathBuf {
    docs().join("mcp-matrix.toml")
}

const BEGIN: &str = "<!-- made from mcp-matrix.toml -->\n";
const END: &str = "<!-- end -->";

/// `BLESS=1` writes it anew.
#[test]
fn the_page_shows_the_rules_of_the_matrix() {
    let path = docs().join("mcp.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("docs/mcp.md has the place for the rules");
    let (shown, after) = rest.split_once(END).expect("docs/mcp.md has the end of the rules");
    let wanted = Table::read().page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(shown, wanted, "docs/mcp.md is not made from docs/mcp-matrix.toml: BLESS=1");
}

#[test]
fn every_cell_has_a_rule_and_every_rule_a_cell() {
    let cells = all_cells();
    assert_eq!(cells.len(), (5 * 3 + 1) * 5 * 2 * BEHAVIOURS.len());
    let table = Table::read();
    for cell in &cells {
        assert!(!table.rule(cell).outcome.is_empty(), "{cell}");
    }
}

#[test]
fn a_table_with_a_hole_a_dead_rule_or_an_unknown_name_is_refused() {
    let whole = std::fs::read_to_string(path()).unwrap();
    let refused = |text: &str, why: &str| {
        let wrong = Table::parse(text).expect_err(why);
        assert!(wrong.contains(why), "{wrong}");
    };
    let rule = |head: &str| format!("\n[[{head}\noutcome = \"x\"\nspec = [\"{{client}}/basic/index#messages\"]\n");
    refused(&format!("{whole}{}", rule("plain]]")), "no cell gets to this rule");
    refused(&format!("{whole}{}", rule("batch]]")), "is no behaviour");
    refused(&format!("{whole}{}", rule("plain]]\nclient = \"2025-06-19\"")), "names no revision");
    refused(&format!("{whole}{}", rule("plain]]\nby = [\"pigeon\"]")), "is none of");
    let without = whole.replace("[[task-cancel]]\noutcome", "[[task-cancel]]\nclient = \"2025-03-26\"\noutcome");
    refused(&without, "no rule for task-cancel: client 2024-11-05 by serve");
    refused(&rule("plain]]\nbye = 1"), "unknown field");
}
