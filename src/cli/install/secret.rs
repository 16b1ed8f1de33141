//! What may be a secret in a client's configuration: by the name of a value, by the value, by the address. Errs on the
//! side of a secret too many; opens nothing.

/// Words in a name that mark a secret.
const SECRET_WORDS: [&str; 9] = ["token", "key", "secret", "password", "passwd", "credential", "auth", "cookie", "pat"];
/// How keys of well-known services begin.
const KEY_STARTS: [&str; 12] =
    ["sk-", "pk-", "rk_", "sk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA"];
/// A word of so many letters and digits without a break is rather a key than a word.
const KEY_CHARS_MIN: usize = 24;

/// Whether a name, in any of the usual spellings, is that of a secret.
pub fn sounds_secret(name: &str) -> bool {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    let marked = |word: &String| SECRET_WORDS.iter().any(|secret| word == secret || *word == format!("{secret}s"));
    words.iter().any(marked) || words.iter().any(|word| matches!(&**word, "apikey" | "authorization" | "accesstoken"))
}

/// Whether a value is rather a key, or an address with a secret in it, than anything else.
pub fn looks_secret(value: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '=');
    let long = value.len() >= KEY_CHARS_MIN
        && value.chars().all(word)
        && value.contains(|c: char| c.is_ascii_digit())
        && value.contains(|c: char| c.is_ascii_alphabetic());
    long || KEY_STARTS.iter().any(|start| value.starts_with(start)) || (value.contains("://") && has_secret(value))
}

/// Whether an address holds more than where something is: a user, a query, a fragment, or a part that is rather a key.
pub fn has_secret(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let mut parts = rest.split('/');
    let host = parts.next().unwrap_or_default();
    host.contains('@') || rest.contains(['?', '#']) || parts.any(looks_secret)
}
