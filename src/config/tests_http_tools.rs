//! What is wrong with a tool that is an HTTP request, as the exact line that people read, and what is permitted.

use super::tests::Folder;
use super::tests_errors::check;

#[test]
fn mistakes_in_http_tools_are_named_with_their_line() {
    const PLACEHOLDERS: &str = "use {{arguments.NAME}} or {{effect_key}}";
    let private = "the `url` of tool `t` names a host that only this machine or its network can reach";
    let permit = "set allow_private = true, or add the host to http_tools.private_hosts";
    let table: Vec<(&str, Vec<String>)> = vec![
        (
            "[tools.t]\nurl = \"https://a.example\"\ncommand = [\"x\"]",
            vec!["2:1: tool `t` has both `command` and `url`; keep one of the two".into()],
        ),
        (
            "[tools.t]\ncommand = [\"x\"]\nmethod = \"GET\"\nallow_private = true",
            vec![
                "3:1: tool `t` is a command and has `method`; remove it, or use `url` instead of `command`".into(),
                "4:1: tool `t` is a command and has `allow_private`; remove it, or use `url` instead of `command`".into(),
            ],
        ),
        (
            "[tools.t]\nurl = \"https://a.example\"\nenv = { A = \"b\" }",
            vec!["3:1: tool `t` is a URL and has `env`; remove it, or use `command` instead of `url`".into()],
        ),
        (
            "[tools.t]\nurl = \"a.example/x\"",
            vec!["2:7: the `url` of tool `t` is no http address; write it as https://host/path".into()],
        ),
        (
            "[tools.t]\nurl = \"https://{{arguments.host}}/x\"",
            vec![
                "2:7: the `url` of tool `t` has a placeholder before its path; write scheme, host and port as they are; arguments go after them"
                    .into(),
            ],
        ),
        (
            "[tools.t]\nurl = \"https://a.example/{{argument.x}}\"",
            vec![format!(
                "2:7: the `url` of tool `t` has the placeholder `argument.x`, which is not known; {PLACEHOLDERS}"
            )],
        ),
        ("[tools.t]\nurl = \"http://127.0.0.1:1/\"", vec![format!("2:7: {private}; {permit}")]),
        ("[tools.t]\nurl = \"http://[::1]/\"\nallow_private = false", vec![format!("2:7: {private}; {permit}")]),
        ("[tools.t]\nurl = \"http://localhost/{{arguments.x}}\"", vec![format!("2:7: {private}; {permit}")]),
        (
            "[tools.t]\nurl = \"https://a.example/\"\nmethod = \"post\"",
            vec!["3:10: `tools.t.method` is `post`, which is not known; did you mean `POST`?".into()],
        ),
        (
            "[tools.t]\nurl = \"https://a.example/\"\nmethod = \"GET\"\nbody = { a = 1 }",
            vec!["4:8: tool `t` is a GET or HEAD and has a `body`; use `query`, or another method".into()],
        ),
        (
            "[tools.t]\nurl = \"https://a.example/\"\nheaders = { \"a b\" = \"c\", ok = \"x\\n\", y = \"{{key}}\" }",
            vec![
                "3:13: `a b` is no name for `tools.t.headers`; use letters, digits and `-`".into(),
                "3:31: `ok` in the headers of tool `t` has a value that no header can carry; remove line breaks and control characters"
                    .into(),
                format!(
                    "3:42: `y` in the headers of tool `t` has the placeholder `key`, which is not known; {PLACEHOLDERS}"
                ),
            ],
        ),
        (
            "[tools.t]\nurl = \"https://a.example/\"\nquery = { q = \"{{q}}\" }\nbody = { a = [\"{{ argumens.b }}\"] }",
            vec![
                format!("3:15: `q` in the query of tool `t` has the placeholder `q`, which is not known; {PLACEHOLDERS}"),
                format!(
                    "4:8: the `body` of tool `t` has the placeholder `argumens.b`, which is not known; {PLACEHOLDERS}"
                ),
            ],
        ),
        (
            "[tools.t]\nurl = \"https://a.example/\"\nretry_on_statuses = [503]\nretry_on_status = [200]",
            vec![
                "3:1: unknown key `retry_on_statuses` in `tools.t`; did you mean `retry_on_status`?".into(),
                "4:20: `tools.t.retry_on_status[0]` is 200; use at least 400".into(),
            ],
        ),
    ];
    let table: Vec<(&str, Vec<&str>)> =
        table.iter().map(|(text, lines)| (*text, lines.iter().map(String::as_str).collect())).collect();
    let table: Vec<(&str, &[&str])> = table.iter().map(|(text, lines)| (*text, lines.as_slice())).collect();
    check("a.toml", &table);
    for permitted in [
        "[tools.t]\nurl = \"http://localhost/\"\nallow_private = true",
        "[http_tools]\nprivate_hosts = [\"10.1.2.3\"]\n[tools.t]\nurl = \"http://10.1.2.3:8080/{{arguments.a.0}}\"",
    ] {
        let folder = Folder::with(&[("a.toml", permitted)]);
        assert!(folder.load("a.toml", &[]).is_ok(), "{permitted}");
    }
}
