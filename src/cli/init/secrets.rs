//! Which values are secret, and the variables that take their places in the file. Errs on the side of a variable too many.

use std::collections::BTreeMap;

use crate::cli::install::secret::{has_secret, looks_secret, sounds_secret};
use crate::cli::output::printable;

/// Headers that tell nothing.
const PLAIN_HEADERS: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];

/// The variables of a file: names, and what each is for.
pub struct Variables {
    keep: bool,
    /// The value is known here, and told to nobody.
    taken: BTreeMap<String, (Option<String>, String)>,
}

impl Variables {
    /// With `keep` secrets stay where they are.
    pub fn new(keep: bool) -> Variables {
        Variables { keep, taken: BTreeMap::new() }
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.taken.keys().map(String::as_str)
    }

    /// A value of `env` as it is written into the file.
    pub fn env(&mut self, server: &str, name: &str, value: &str) -> String {
        match !self.keep && !is_reference(value) && (sounds_secret(name) || looks_secret(value)) {
            true => self.instead(server, (name, value), &format!("{name} in the environment of {server}")),
            false => value.to_owned(),
        }
    }

    /// A header's value as it is written into the file.
    pub fn header(&mut self, server: &str, name: &str, value: &str) -> String {
        if self.keep || is_reference(value) || PLAIN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            return value.to_owned();
        }
        let what = format!("the header {name} of {server}");
        let variable = format!("{server}_{name}");
        match value.split_once(' ').filter(|(scheme, _)| matches!(*scheme, "Bearer" | "Basic" | "Token")) {
            Some((scheme, secret)) => format!("{scheme} {}", self.instead(server, (&variable, secret), &what)),
            None => self.instead(server, (&variable, value), &what),
        }
    }

    /// An address as it is written into the file.
    pub fn url(&mut self, server: &str, url: &str) -> String {
        match !self.keep && !is_reference(url) && has_secret(url) {
            true => self.instead(server, (&format!("{server}_URL"), url), &format!("the address of {server}")),
            false => url.to_owned(),
        }
    }

    /// Arguments as they are written into the file.
    pub fn args(&mut self, server: &str, args: &[String]) -> Vec<String> {
        let mut after: Option<&str> = None;
        let mut out = Vec::with_capacity(args.len());
        for arg in args {
            let flag = after.take();
            let what = format!("an argument of {server}");
            let written = match arg.split_once('=').filter(|(flag, _)| flag.starts_with('-')) {
                _ if self.keep || is_reference(arg) => arg.clone(),
                Some((flag, value)) if sounds_secret(flag) || looks_secret(value) => {
                    format!("{flag}={}", self.instead(server, (&format!("{server}_{flag}"), value), &what))
                }
                _ if flag.is_some_and(sounds_secret) && !arg.starts_with('-') => {
                    let name = format!("{server}_{}", flag.unwrap_or_default());
                    self.instead(server, (&name, arg), &what)
                }
                _ if looks_secret(arg) => self.instead(server, (&format!("{server}_SECRET"), arg), &what),
                _ => arg.clone(),
            };
            after = Some(arg.as_str()).filter(|arg| arg.starts_with('-') && !arg.contains('='));
            out.push(written);
        }
        out
    }

    /// The variable for something that its client would ask for.
    pub fn asked(&mut self, server: &str, name: &str) -> String {
        self.taken.entry(variable(name)).or_insert((None, format!("what the client asked for, in {server}")));
        format!("${{{}}}", variable(name))
    }

    fn instead(&mut self, server: &str, (name, value): (&str, &str), what: &str) -> String {
        let own = variable(name);
        let candidates = [own.clone(), variable(&format!("{server}_{name}"))].into_iter();
        let numbered = (2u32..).map(|n| format!("{own}_{n}"));
        // Two servers may use one name for two accounts.
        let free = |name: &String| match self.taken.get(name) {
            None => true,
            Some((Some(known), _)) => known == value,
            Some((None, _)) => false,
        };
        let name = candidates.chain(numbered).find(free).unwrap_or(own);
        self.taken.entry(name.clone()).or_insert((Some(value.to_owned()), what.to_owned()));
        format!("${{{name}}}")
    }

    /// Says which variables have to be set; never to what.
    pub fn tell(&self) {
        if self.taken.is_empty() {
            return;
        }
        eprintln!("set these variables where the server is started; their values were not written down:");
        for (name, (_, what)) in &self.taken {
            eprintln!("  {name:<32} {}", printable(what));
        }
    }
}

/// The name of a variable from any text.
pub fn variable(text: &str) -> String {
    let word: String = text
        .trim_start_matches('-')
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    let mut parts: Vec<&str> = word.split('_').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        parts.push("SECRET");
    }
    let word = parts.join("_");
    if word.starts_with(|c: char| c.is_ascii_digit()) { format!("_{word}") } else { word }
}

/// Nothing but a reference stands there, perhaps behind the scheme of a header.
fn is_reference(value: &str) -> bool {
    let value = ["Bearer ", "Basic ", "Token "].iter().find_map(|scheme| value.strip_prefix(scheme)).unwrap_or(value);
    value.is_empty() || (value.starts_with("${") && value.ends_with('}') && !value.contains(":-"))
}
