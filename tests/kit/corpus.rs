//! The corpus: fixed `tools/call` results, kept as files in `tests/corpus` and answered byte for byte. Parses nothing.

use std::path::Path;

/// The exact text of one case, or `None` if there is no such file.
pub fn case(name: &str) -> Option<String> {
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !plain {
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).ok()?;
    Some(text.trim_end().to_owned())
}

/// The names of all cases, in order.
pub fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())).collect();
    names.sort_unstable();
    names
}
