//! The house rules that a machine can check, as tests over the sources (CONTRIBUTING.md has the rest). Each rule is a
//! function from a file to what is wrong with it, and has a test in which a planted violation fails.
//! Reads files only: no compiler, no version control.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const LINES_MAX: usize = 500;
const TEST_LINES_MAX: usize = 800;

/// Folders and endings of what is built, downloaded or left behind.
const NOT_OURS: [&str; 7] = [".git", "target", "node_modules", ".venv", "__pycache__", ".pytest_cache", "dist"];
const NO_TEXT: [&str; 9] = ["db", "db-wal", "db-shm", "log", "png", "ico", "woff2", "gz", "pyc"];

/// Names for the place where the rest goes.
const BANNED_NAMES: [&str; 9] =
    ["util", "utils", "common", "commons", "helper", "helpers", "manager", "managers", "misc"];

/// The floor of each top-level module. Imports go down only, and never sideways on floor 3.
const FLOORS: [(&str, u8); 10] = [
    ("model", 0),
    ("telemetry", 0),
    ("store", 1),
    ("engine", 2),
    ("worker", 3),
    ("mcp", 3),
    ("http", 3),
    ("config", 4),
    ("cli", 4),
    ("serve", 4),
];

/// The one file that may read the wall clock.
const CLOCK: &str = "src/engine/clock.rs";

/// Test files that may sleep, and why nothing better is to be had.
const MAY_SLEEP: [(&str, &str); 12] = [
    (
        "src/store/postgres/tests/writing.rs",
        "asks a database again what its other connections have done; how long a mark waits is what a test is about",
    ),
    ("src/store/postgres/tests/wakeups.rs", "changes come at any moment between two looks, which is what is measured"),
    (
        "src/worker/upstream/tests/guard.rs",
        "asks the system again whether a process is gone; its end signals nobody here",
    ),
    ("tests/it/support/rmcp_client.rs", "a client's own time-out, which is what its tests are about"),
    ("tests/it/support/process_tree.rs", "asks the system again whether foreign processes are gone; no event tells"),
    ("tests/it/support/cluster/mod.rs", "asks a database server again whether it takes connections; no event tells"),
    ("tests/it/support/cluster/standby.rs", "asks a database server again whether it has caught up; no event tells"),
    ("tests/it/support/pg_proxy/link.rs", "a slow network, which is what its tests are about"),
    ("tests/it/crash_scene.rs", "kills come at random moments, and a store that other processes write is asked again"),
    (
        "tests/it/cases_retention.rs",
        "a span in which nothing is deleted, which calls beside deleting are compared with",
    ),
    ("tests/it/cases_scene.rs", "time between two acts of a client, which is what its tests are about"),
    ("tests/it/support/mod.rs", "asks again whether something outside of this process came true; no event tells"),
];

/// A file of the tree: its path from the root, and its text.
struct File {
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Unit tests in `tests.rs` or a `tests` folder, and everything below `tests/`.
    fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }
}

/// The tree that the tests run in, which may not be the one that they were built in.
fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

fn files() -> Vec<File> {
    let (root, mut found) = (root(), Vec::new());
    walk(&root, &root, &mut found);
    assert!(found.iter().filter(|file| file.is_rust()).count() > 10, "the sources are not at {}", root.display());
    found
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<File>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if NOT_OURS.contains(&name.as_str()) || entry.file_type().unwrap().is_symlink() {
            continue;
        }
        if path.is_dir() {
            walk(root, &path, found);
            continue;
        }
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        // What is no UTF-8 has no lines to judge.
        if let (false, Ok(text)) = (NO_TEXT.contains(&ending), fs::read_to_string(&path)) {
            let path = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            found.push(File { path, text });
        }
    }
}

/// Runs a rule over every file and shows all that is wrong at once.
#[track_caller]
fn hold(rule: impl Fn(&File) -> Vec<String>) {
    let wrong: Vec<String> = files()
        .iter()
        .flat_map(|file| rule(file).into_iter().map(|what| format!("{}: {what}", file.path)).collect::<Vec<_>>())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs a rule over one made-up file; `expect` is how many violations it finds.
#[track_caller]
fn bites(rule: impl Fn(&File) -> Vec<String>, path: &str, text: &str, expect: usize) {
    let found = rule(&File { path: path.into(), text: text.into() });
    assert_eq!(found.len(), expect, "{path}: {text}\n{found:?}");
}

/// Rust without comments, cut into what is code and what stands in string literals.
struct Source {
    code: String,
    strings: String,
}

/// Blanks comments, and moves the contents of string literals out of the code. Lines stay lines.
fn source(text: &str) -> Source {
    let bytes: Vec<char> = text.chars().collect();
    let (mut code, mut strings, mut at) = (String::new(), String::new(), 0);
    let starts = |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| bytes.get(at + i) == Some(&c));
    while at < bytes.len() {
        if starts(at, "//") {
            while at < bytes.len() && bytes[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "/*") {
            let mut depth = 0;
            while at < bytes.len() {
                if starts(at, "/*") {
                    (depth, at) = (depth + 1, at + 2);
                } else if starts(at, "*/") {
                    (depth, at) = (depth - 1, at + 2);
                } else {
                    at += 1;
                }
                if depth == 0 {
                    break;
                }
            }
        } else if let Some(end) = raw_string_end(&bytes, at) {
            strings.extend(&bytes[at..end]);
            strings.push('\n');
            code.push_str("\"\"");
            at = end;
        } else if bytes[at] == '"' {
            at += 1;
            while at < bytes.len() && bytes[at] != '"' {
                let step = if bytes[at] == '\\' { 2 } else { 1 };
                strings.extend(bytes[at..].iter().take(step));
                at += step;
            }
            strings.push('\n');
            code.push_str("\"\"");
            at += 1;
        } else if bytes[at] == '\'' && (bytes.get(at + 1) == Some(&'\\') || bytes.get(at + 2) == Some(&'\'')) {
            // A character, not a lifetime.
            at += if bytes[at + 1] == '\\' { 3 } else { 2 };
            while at < bytes.len() && bytes[at] != '\'' {
                at += 1;
            }
            at += 1;
        } else {
            code.push(bytes[at]);
            at += 1;
        }
    }
    Source { code, strings }
}

/// Where the raw string that starts at `at` ends, if one starts there.
fn raw_string_end(text: &[char], at: usize) -> Option<usize> {
    let before = at.checked_sub(1).map(|before| text[before]);
    if text[at] != 'r' || before.is_some_and(|c| (c.is_alphanumeric() && c != 'b') || c == '_') {
        return None;
    }
    let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
    if text.get(at + 1 + hashes) != Some(&'"') {
        return None;
    }
    let mut end = at + 2 + hashes;
    while end < text.len() {
        if text[end] == '"' && text[end + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return Some(end + 1 + hashes);
        }
        end += 1;
    }
    Some(end)
}

/// Where `word` stands as a word of its own.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part_of_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        !part_of_word(text[..*at].chars().next_back()) && !part_of_word(text[at + word.len()..].chars().next())
    })
}

// ---

fn length_and_opening(file: &File) -> Vec<String> {
    let mut wrong = Vec::new();
    if !file.is_rust() {
        return wrong;
    }
    let (lines, limit) = (file.text.lines().count(), if file.is_test() { TEST_LINES_MAX } else { LINES_MAX });
    if lines > limit {
        wrong.push(format!("{lines} lines, {limit} at most"));
    }
    if !file.text.starts_with("//! ") {
        wrong.push("does not open with what it does (//!)".into());
    }
    wrong
}

#[test]
fn files_are_short_and_open_with_what_they_do() {
    hold(length_and_opening);
    bites(length_and_opening, "src/a.rs", "fn a() {}\n", 1);
    bites(length_and_opening, "src/a.rs", &"//! a\n".repeat(LINES_MAX + 1), 1);
    bites(length_and_opening, "src/a/tests.rs", &"//! a\n".repeat(TEST_LINES_MAX), 0);
    bites(length_and_opening, "src/a/tests/b.rs", &"//! a\n".repeat(TEST_LINES_MAX + 1), 1);
}

fn names(file: &File) -> Vec<String> {
    let stems = file.path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let banned = stems.filter(|stem| BANNED_NAMES.contains(stem)).map(|stem| format!("a module named {stem}"));
    if !file.is_rust() {
        return Vec::new();
    }
    let code = source(&file.text).code;
    let inline = BANNED_NAMES.iter().filter(|name| words(&code, &format!("mod {name}")).next().is_some());
    banned.chain(inline.map(|name| format!("declares a module named {name}"))).collect()
}

#[test]
fn no_module_is_the_place_where_the_rest_goes() {
    hold(names);
    bites(names, "src/store/util.rs", "", 1);
    bites(names, "tests/it/helpers/mod.rs", "", 1);
    bites(names, "src/a.rs", "mod common;", 1);
    bites(names, "src/a.rs", "mod commonplace;", 0);
}

fn floor_of(module: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == module).map(|(_, floor)| *floor)
}

/// The top-level modules that `code` names by `crate::…`, or by climbing to the root from a file `depth` modules deep.
fn imports(code: &str, depth: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let climb = "super::".repeat(depth);
    for root in ["crate::", climb.as_str()] {
        for at in words(code, root.trim_end_matches("::")).filter(|at| !code[..*at].ends_with("super::")) {
            let Some(rest) = code[at..].strip_prefix(root) else { continue };
            match rest.strip_prefix('{') {
                Some(group) => found.extend(members(group)),
                None => found.extend(identifier(rest)),
            }
        }
    }
    found
}

fn identifier(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The first path parts of an import group whose opening brace is already read.
fn members(group: &str) -> Vec<String> {
    let (mut depth, mut found, mut expected) = (1, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => expected = true,
            c if c.is_whitespace() => {}
            _ if expected && depth == 1 => {
                found.extend(identifier(&group[at..]));
                expected = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}

fn floors(file: &File) -> Vec<String> {
    let Some(path) = file.path.strip_prefix("src/").filter(|_| file.is_rust()) else { return Vec::new() };
    if ["lib.rs", "main.rs"].contains(&path) {
        return Vec::new();
    }
    let parts: Vec<&str> = path.trim_end_matches(".rs").trim_end_matches("/mod").split('/').collect();
    let module = parts[0];
    let Some(floor) = floor_of(module) else { return vec![format!("{module} has no floor")] };
    let permitted = |other: &str| match floor_of(other) {
        Some(below) => other == module || below < floor || (below == floor && floor != 3),
        None => true,
    };
    let imports = imports(&source(&file.text).code, parts.len());
    let wrong = imports.iter().filter(|other| !permitted(other));
    wrong.map(|other| format!("{module} (floor {floor}) imports {other}")).collect()
}

#[test]
fn imports_go_down_only_and_never_sideways_on_floor_3() {
    hold(floors);
    bites(floors, "src/model/a.rs", "use crate::store::Store;", 1);
    bites(floors, "src/store/a.rs", "use crate::{model::event, engine::{self, clock}};", 1);
    bites(floors, "src/mcp/a.rs", "fn f() { crate::worker::run() }", 1);
    bites(floors, "src/mcp/a/tests.rs", "use crate::http::auth;", 1);
    bites(floors, "src/worker/upstream/a.rs", "use super::super::super::mcp::call;", 1);
    bites(floors, "src/worker/mod.rs", "use super::http::auth;", 1);
    bites(floors, "src/attic/a.rs", "", 1);
    bites(floors, "src/mcp/a.rs", "// crate::worker is elsewhere\nuse crate::engine::Engine; use crate::mcp::b;", 0);
    bites(floors, "src/worker/upstream/a.rs", "use super::super::mcp::call; use super::http::leg;", 0);
    bites(floors, "src/cli/a.rs", "use crate::{serve, config, store::conformance};", 0);
    bites(floors, "src/lib.rs", "use crate::serve;", 0);
}

fn wall_clock(file: &File) -> Vec<String> {
    if !file.is_rust() || !file.path.starts_with("src/") || file.path == CLOCK {
        return Vec::new();
    }
    let code = source(&file.text).code;
    let clocks = ["SystemTime", "Timestamp::now", "Zoned::now"];
    clocks.iter().filter(|clock| words(&code, clock).next().is_some()).map(|clock| format!("names {clock}")).collect()
}

#[test]
fn one_file_reads_the_wall_clock() {
    hold(wall_clock);
    bites(wall_clock, "src/store/a.rs", "use std::time::{Instant, SystemTime};", 1);
    bites(wall_clock, "src/cli/a.rs", "let at = jiff::Timestamp::now();", 1);
    bites(wall_clock, "src/cli/a.rs", "let at = std::time::Instant::now(); // SystemTime", 0);
    bites(wall_clock, CLOCK, "use std::time::SystemTime;", 0);
}

fn unfinished(file: &File) -> Vec<String> {
    if !file.is_rust() {
        return Vec::new();
    }
    let code = source(&file.text).code;
    let mut wrong: Vec<String> = ["todo!", "unimplemented!", "#[ignore"]
        .iter()
        .filter(|what| code.contains(**what))
        .map(|what| format!("has {what}"))
        .collect();
    wrong.extend(words(&code, "unsafe").next().map(|_| "has unsafe".into()));
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    wrong
        .extend(marks.iter().filter(|mark| words(&file.text, mark).next().is_some()).map(|mark| format!("has {mark}")));
    wrong
}

#[test]
fn nothing_is_left_unfinished_unsafe_or_ignored() {
    hold(unfinished);
    bites(unfinished, "src/a.rs", "fn a() { todo!() }", 1);
    bites(unfinished, "src/a.rs", "fn a() { unimplemented!(\"later\") }", 1);
    bites(unfinished, "tests/it/a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}", 1);
    bites(unfinished, "src/a.rs", "unsafe { a() }", 1);
    bites(unfinished, "src/a.rs", concat!("// TO", "DO: later"), 1);
    bites(
        unfinished,
        "src/a.rs",
        "// unsafe todo!\nconst A: &str = r#\"\"unsafe\" #[ignore]\"#; let b = '\"'; unsafely();",
        0,
    );
}

fn sleeps(file: &File) -> Vec<String> {
    // The kit and the fixture are what stands behind the program: a slow tool has to be slow.
    let in_kit = file.path.starts_with("tests/kit/") || file.path.starts_with("tests/fixture/");
    let listed = MAY_SLEEP.iter().any(|(path, _)| *path == file.path);
    if !file.is_rust() || !file.is_test() || in_kit || listed {
        return Vec::new();
    }
    let code = source(&file.text).code;
    let ways = ["thread::sleep", "time::sleep", "time::sleep_until"];
    ways.iter().filter(|way| words(&code, way).next().is_some()).map(|way| format!("waits by {way}")).collect()
}

#[test]
fn tests_wait_for_events_and_not_for_time() {
    hold(sleeps);
    bites(sleeps, "src/engine/tests.rs", "std::thread::sleep(a);", 1);
    bites(sleeps, "tests/it/a.rs", "use tokio::time::sleep;", 1);
    bites(sleeps, "tests/kit/tools.rs", "tokio::time::sleep(a).await;", 0);
    bites(sleeps, "src/engine/scheduler.rs", "tokio::time::sleep(a).await;", 0);
}

fn sql(file: &File) -> Vec<String> {
    let text = match () {
        () if file.path.ends_with(".sql") => {
            file.text.lines().map(|l| l.split("--").next().unwrap_or(l)).collect::<Vec<_>>().join("\n")
        }
        // Its bad examples are what the rules of the driver have to find.
        () if file.path == "src/store/postgres/tests/rules.rs" => return Vec::new(),
        () if file.is_rust() && file.path.starts_with("src/") => source(&file.text).strings,
        () => return Vec::new(),
    };
    let text = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let banned = ["for update", "now()", "current_timestamp", "gen_random_uuid()"];
    // `now()` ends in no letter, so only its beginning is the beginning of a word.
    let stands = |what: &str| {
        let name = what.trim_end_matches("()");
        words(&text, name).any(|at| text[at..].starts_with(what))
    };
    banned.iter().filter(|what| stands(what)).map(|what| format!("SQL with {what}")).collect()
}

#[test]
fn sql_locks_no_rows_and_makes_no_times_or_ids() {
    hold(sql);
    bites(sql, "src/store/a.rs", "const A: &str = \"SELECT a FROM b\n  FOR  UPDATE SKIP LOCKED\";", 1);
    bites(sql, "migrations/sqlite/1.sql", "CREATE TABLE a (at INTEGER DEFAULT CURRENT_TIMESTAMP);", 1);
    bites(sql, "src/store/a.rs", "const A: &str = r#\"UPDATE a SET b = now()\"#;", 1);
    bites(sql, "src/store/a.rs", "let a = clock.now(); const B: &str = \"SELECT known() FROM a\";", 0);
    bites(sql, "migrations/sqlite/1.sql", "-- never FOR UPDATE\nCREATE TRIGGER a BEFORE UPDATE ON b;", 0);
}

fn white_space(file: &File) -> Vec<String> {
    let checked = [".rs", ".md", ".toml", ".sql", ".yml", ".yaml", ".sh", ".ts", ".py"];
    if !checked.iter().any(|ending| file.path.ends_with(ending)) {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    let trailing = lines.filter(|(_, line)| line.ends_with([' ', '\t', '\r'])).map(|(at, _)| at + 1);
    let mut wrong: Vec<String> = trailing.map(|line| format!("white space at the end of line {line}")).collect();
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        wrong.push("does not end with a line feed".into());
    }
    wrong
}

#[test]
fn no_line_ends_in_white_space() {
    hold(white_space);
    bites(white_space, "a.md", "a \nb\t\nc\n", 2);
    bites(white_space, "a.rs", "a", 1);
    bites(white_space, "LICENSE", "a ", 0);
}

/// Paths of one machine and hosts of package registries: what belongs to the maker, not to the tree.
fn traces(file: &File) -> Vec<String> {
    let mut wrong = Vec::new();
    for folder in [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Use", "rs/")] {
        let own = |at: usize| !file.text[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~})>]*".contains(c));
        // Ada is the person of every example.
        let example = |at: usize| words(&file.text[at + folder.len()..], "ada").next() == Some(0);
        if file.text.match_indices(folder).any(|(at, _)| own(at) && !example(at)) {
            wrong.push(format!("has a path under {folder}"));
        }
    }
    let lock_source = concat!("registry+https://github.com/rust-lang/crates", ".io-index");
    let text = if file.path.ends_with("Cargo.lock") { file.text.replace(lock_source, "") } else { file.text.clone() };
    let hosts = [
        concat!("crates", ".io"),
        concat!("registry.np", "mjs.org"),
        concat!("registry.ya", "rnpkg.com"),
        concat!("py", "pi.org"),
        concat!("pythonho", "sted.org"),
        concat!("proxy.go", "lang.org"),
    ];
    wrong.extend(hosts.iter().filter(|host| text.contains(**host)).map(|host| format!("names the registry {host}")));
    if file.path.ends_with("package-lock.json") && text.contains("\"resolved\"") {
        wrong.push("says where packages were downloaded from (\"resolved\")".into());
    }
    wrong
}

#[test]
fn no_file_names_a_makers_machine_or_registry() {
    hold(traces);
    bites(traces, "a.md", concat!("see /ho", "me/adam/notes"), 1);
    bites(traces, "a.md", concat!("see /ho", "me/ada/notes"), 0);
    bites(traces, "a.toml", concat!("path = \"/wo", "rk/main\""), 1);
    bites(traces, "a.md", concat!("POST https://host.example/wo", "rk/v1 and src/ro", "ot/a"), 0);
    bites(traces, "uv.lock", concat!("url = \"https://files.pythonho", "sted.org/a\""), 1);
    bites(traces, "Cargo.lock", concat!("source = \"registry+https://github.com/rust-lang/crates", ".io-index\""), 0);
    bites(traces, "Cargo.lock", concat!("source = \"registry+https://mirror.example/crates", ".io-index\""), 1);
    bites(traces, "tests/a/package-lock.json", "{\"resolved\": \"https://a\"}", 1);
}

/// The relative targets of the links in a markdown text, without code blocks.
fn links(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.map(|target| target.split('#').next().unwrap_or("").trim().to_owned());
    targets.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")).collect()
}

fn dead_links(file: &File) -> Vec<String> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    let root = root();
    let folder = root.join(&file.path).parent().map(Path::to_path_buf).unwrap_or(root);
    let dead = links(&file.text).into_iter().filter(|target| !folder.join(target).exists());
    dead.map(|target| format!("links to {target}, which is not there")).collect()
}

#[test]
fn links_lead_to_files_that_are_there() {
    hold(dead_links);
    bites(dead_links, "docs/a.md", "[a](no-such-page.md#part) and [b](../LICENSE)", 1);
    bites(dead_links, "a.md", "[a](https://a.example/b) [b](#here) [c](src/lib.rs)\n```\n[d](e)\n```\n", 0);
}

/// The variables that a text names by which long forms of tests are asked for.
fn variables(text: &str) -> BTreeSet<&str> {
    let named = text.match_indices(concat!("DURABLE_MCP_", "TEST_")).map(|(at, _)| &text[at..]);
    named.map(|rest| &rest[..rest.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(rest.len())]).collect()
}

#[test]
fn every_long_form_of_a_test_is_in_the_table_of_contributing() {
    let files = files();
    let tests: Vec<&str> =
        files.iter().filter(|file| file.is_rust() && file.is_test()).map(|file| file.text.as_str()).collect();
    let contributing = &files.iter().find(|file| file.path == "CONTRIBUTING.md").unwrap().text;
    let rows: Vec<&str> = contributing.lines().filter(|line| line.starts_with("| `DURABLE")).collect();
    let first = |row: &str| row.split('|').nth(1).unwrap().trim().trim_matches('`').to_owned();
    let (tests, rows) = (tests.join("\n"), rows.iter().map(|row| first(row)).collect::<Vec<_>>());
    assert_eq!(variables(&tests), rows.iter().map(String::as_str).collect());
    assert!(rows.len() > 3, "{rows:?}");
    assert_eq!(variables(concat!("a DURABLE_MCP_", "TEST_ONE=1 b")).len(), 1);
}
