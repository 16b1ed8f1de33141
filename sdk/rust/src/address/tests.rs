//! Where the server is and which token is used: `sdk/vectors/addresses.json`.

use std::collections::HashMap;

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Vectors {
    tokens: HashMap<String, String>,
    good: Vec<Good>,
    bad: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Good {
    url: Option<String>,
    given: Option<String>,
    env: HashMap<String, String>,
    base: String,
    token: Option<String>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../../../vectors/addresses.json")).unwrap()
}

#[test]
fn base_and_token_are_found() {
    let (vectors, data) = (vectors(), tempfile::tempdir().unwrap());
    fs::create_dir(data.path().join("servers")).unwrap();
    for (path, text) in &vectors.tokens {
        fs::write(data.path().join(path), text).unwrap();
    }
    for case in vectors.good {
        let env = |name: &str| match name {
            "DURABLE_MCP_DATA_DIR" => Some(data.path().into()),
            name => case.env.get(name).map(OsString::from),
        };
        let address = ServerAddress::in_env(case.url.as_deref(), case.given.as_deref(), &env).unwrap();
        assert_eq!((address.base(), address.token()), (&*case.base, case.token.clone()), "{case:?}");
    }
}

#[test]
fn what_is_no_address_is_refused_and_not_repeated() {
    for url in vectors().bad {
        let refused = ServerAddress::in_env(Some(&url), None, &|_| None).err().expect(&url);
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
}
