//! The image and the compose file, read as what they are: there is no container engine here, so each property that a
//! reader would look for is a rule, and each rule is shown to find a planted fault. The image's build context is tried with
//! Cargo itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::repository::{assert_found, grace_and_port, millis, refuses, root, strings, text, version, yaml};

/// One instruction of a Dockerfile.
#[derive(Debug)]
struct Instruction {
    name: String,
    rest: String,
}

impl Instruction {
    /// The words of an instruction in its exec form; none in the shell form.
    fn exec(&self) -> Vec<String> {
        let list = self.rest.find('[').and_then(|at| serde_json::from_str::<Value>(&self.rest[at..]).ok());
        list.map(|list| strings(&list)).unwrap_or_default()
    }
}

/// The stages, each beginning with its FROM.
fn stages(dockerfile: &str) -> Vec<Vec<Instruction>> {
    let lines: Vec<&str> = dockerfile.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let mut stages: Vec<Vec<Instruction>> = Vec::new();
    for line in lines.join("\n").replace("\\\n", " ").lines() {
        let Some((name, rest)) = line.trim().split_once(' ') else { continue };
        let (name, rest) = (name.to_uppercase(), rest.split_whitespace().collect::<Vec<_>>().join(" "));
        if name == "FROM" {
            stages.push(Vec::new());
        }
        stages.last_mut().expect("FROM first").push(Instruction { name, rest });
    }
    stages
}

fn image_faults(dockerfile: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    let stages = stages(dockerfile);
    let (Some(build), Some(last)) = (stages.first(), stages.last()) else { return vec!["no stage".into()] };
    let all = || stages.iter().flatten();
    let one = |name: &str| last.iter().rfind(|at| at.name == name);
    let rest = |name: &str| one(name).map(|at| at.rest.as_str()).unwrap_or_default();

    rule(stages.len() >= 2 && last[0].rest == "scratch", "the image is not empty but for the program");
    let rust: Vec<&str> = env!("CARGO_PKG_RUST_VERSION").split('.').take(2).collect();
    let wanted = format!("rust:{}-", rust.join("."));
    rule(build[0].rest.starts_with(&wanted), "it is not built with the Rust of the manifest");
    rule(!all().any(|at| at.name == "FROM" && at.rest.contains(":latest")), "a base has no version");
    rule(!all().any(|at| at.name == "ADD"), "ADD fetches and unpacks what nobody checked");
    rule(!last.iter().any(|at| at.name == "RUN"), "an empty image can run nothing");
    let build_line = build.iter().find(|at| at.name == "RUN" && at.rest.contains("cargo build"));
    let build_line = build_line.map(|at| at.rest.as_str()).unwrap_or_default();
    rule(build_line.contains("--release --locked"), "it is not built from the lock");
    rule(build_line.contains("-musl") && build_line.contains("INTERP"), "nobody checks that it is static");

    let user = rest("USER");
    let ids: Vec<u32> = user.split(':').filter_map(|id| id.parse().ok()).collect();
    rule(ids.len() == 2 && ids.iter().all(|id| *id >= 1000), "the user is not numeric, or is root");
    let entry = one("ENTRYPOINT").map(Instruction::exec).unwrap_or_default();
    rule(entry.len() == 1, "the entry point is no program in exec form");
    let program = entry.first().cloned().unwrap_or_default();
    let copied = |to: &str| last.iter().any(|at| at.name == "COPY" && at.rest.split(' ').next_back() == Some(to));
    rule(copied(&program), "the entry point is not in the image");
    rule(copied("/etc/ssl/certs/ca-certificates.crt"), "no certificates: no server can be reached over TLS");
    let data = rest("ENV").strip_prefix("DURABLE_MCP_DATA_DIR=").unwrap_or_default().to_owned();
    let owned = format!("--chown={user} {data} {data}");
    rule(
        !data.is_empty() && last.iter().any(|at| at.name == "COPY" && at.rest.ends_with(&owned)),
        "its data has no home",
    );
    rule(one("VOLUME").map(Instruction::exec) == Some(vec![data]), "its data does not outlive it");

    let health = one("HEALTHCHECK").map(Instruction::exec).unwrap_or_default();
    rule(health.first() == Some(&program), "the health check is not the program");
    rule(
        health.contains(&"doctor".to_owned()) && health.contains(&"--ready".to_owned()),
        "it does not ask for readiness",
    );
    let command = one("CMD").map(Instruction::exec).unwrap_or_default();
    rule(command == ["serve"], "it does not serve by itself");
    for words in [health.get(1..).unwrap_or_default().to_vec(), command] {
        faults.extend(refuses(&words));
    }
    let labels = rest("LABEL");
    let label = |name: &str, value: &str| labels.contains(&format!("{name}=\"{value}\""));
    let entry: Value = serde_json::from_str(&text("server.json")).unwrap();
    if !label("org.opencontainers.image.version", version()) {
        faults.push("the label has another version".into());
    }
    if !label("io.modelcontextprotocol.server.name", entry["name"].as_str().unwrap()) {
        faults.push("the label is not the name in the registry".into());
    }
    let secret = |at: &&Instruction| {
        matches!(at.name.as_str(), "ENV" | "ARG")
            && ["PASSWORD", "TOKEN", "SECRET", "KEY"].iter().any(|word| at.rest.to_uppercase().contains(word))
    };
    faults.extend(all().find(secret).map(|at| format!("a secret would stay in a layer: {}", at.rest)));
    faults
}

#[test]
fn the_image_is_one_static_program_of_a_plain_user() {
    assert_found(
        &text("Dockerfile"),
        image_faults,
        &[
            ("FROM scratch", "FROM debian:12", "not empty"),
            ("FROM rust:1.95-bookworm", "FROM rust:1.80-bookworm", "Rust of the manifest"),
            ("FROM rust:1.95-bookworm", "FROM rust:latest", "no version"),
            ("COPY . .", "ADD . .", "ADD"),
            ("--release --locked", "--release", "from the lock"),
            ("grep -q INTERP", "grep -q NOTHING", "static"),
            ("EXPOSE 7400\nUSER 65532:65532", "USER durable", "not numeric"),
            ("EXPOSE 7400\nUSER 65532:65532", "USER 0:0", "or is root"),
            ("ENTRYPOINT [\"/durable-mcp\"]", "ENTRYPOINT durable-mcp", "exec form"),
            ("ENTRYPOINT [\"/durable-mcp\"]", "ENTRYPOINT [\"/usr/bin/durable-mcp\"]", "not in the image"),
            ("\"--ready\"]", "\"--alive\"]", "--alive"),
            ("\"doctor\", \"--ready\"", "\"doctor\"", "readiness"),
            ("CMD [\"serve\"]", "CMD [\"--help\"]", "by itself"),
            ("--chown=65532:65532", "--chown=0:0", "no home"),
            ("VOLUME [\"/data\"]", "VOLUME [\"/var\"]", "outlive"),
            ("version=\"0.1.0\"", "version=\"0.0.9\"", "another version"),
            ("name=\"io.github.durable-mcp", "name=\"io.github.other", "in the registry"),
            ("EXPOSE 7400", "ARG DATABASE_PASSWORD=x", "stay in a layer"),
            ("/etc/ssl/certs/ca-certificates.crt\n", "/etc/ca.crt\n", "certificates"),
        ],
    );
}

/// What `.dockerignore` sends: everything that a line with `!` names, but what a later line takes out.
fn context(ignore: &str, to: &Path) {
    let sent: Vec<&str> = ignore.lines().filter_map(|line| line.strip_prefix('!')).collect();
    assert!(ignore.lines().any(|line| line == "*"), "all is sent that nobody named");
    for path in sent {
        copy(&root().join(path), &to.join(path));
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        if from.ends_with("target") {
            return;
        }
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().flatten() {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}

/// Whether Cargo takes what is sent as the whole package, and what the sources include is there.
fn context_faults(ignore: &str) -> Vec<String> {
    let folder = crate::support::scratch();
    context(ignore, folder.path());
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let asked = std::process::Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1", "--manifest-path"])
        .arg(folder.path().join("Cargo.toml"))
        .output()
        .unwrap();
    let mut faults = Vec::new();
    if !asked.status.success() {
        faults.push(String::from_utf8_lossy(&asked.stderr).into_owned());
        return faults;
    }
    let metadata: Value = serde_json::from_slice(&asked.stdout).unwrap();
    for target in
        metadata["packages"].as_array().unwrap().iter().flat_map(|package| package["targets"].as_array().unwrap())
    {
        let source = target["src_path"].as_str().unwrap();
        if !Path::new(source).exists() {
            faults.push(format!("{source} is not sent"));
        }
    }
    for file in crate::support::repository::files("src", ".rs") {
        let source = std::fs::read_to_string(&file).unwrap();
        for part in source.split("include_str!(\"").skip(1).filter_map(|part| part.split('"').next()) {
            let included = file.parent().unwrap().join(part).canonicalize().unwrap();
            let inside = included.strip_prefix(root().canonicalize().unwrap()).unwrap().to_owned();
            let tested =
                file.components().any(|part| part.as_os_str().to_str().is_some_and(|part| part.starts_with("tests")));
            if !tested && !folder.path().join(&inside).exists() {
                faults.push(format!("{} is not sent", inside.display()));
            }
        }
    }
    faults
}

#[test]
fn a_build_of_the_image_gets_every_file_that_it_reads() {
    assert_found(
        &text(".dockerignore"),
        context_faults,
        &[
            ("!tests/it/main.rs\n", "", "tests/it/main.rs"),
            ("!migrations\n", "", "migrations"),
            ("!sdk/rust\n", "", "sdk/rust"),
        ],
    );
}

/// `${NAME:-text}` filled in as compose does without any variable set; a variable without a default is a fault.
fn interpolated(compose: &str, faults: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut rest = compose;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let (inside, after) = rest[at + 2..].split_once('}').expect("a variable that ends");
        match inside.split_once(":-") {
            Some((_, default)) => out.push_str(default),
            None => faults.push(format!("{inside} has no default")),
        }
        rest = after;
    }
    out + rest
}

fn compose_faults(compose: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let documents = yaml(&interpolated(compose, &mut faults));
    let file = &documents[0];
    let (grace, port) = grace_and_port("deploy/durable-mcp.production.toml");
    let services = file["services"].as_object().unwrap();
    let mut roles: BTreeMap<String, usize> = BTreeMap::new();
    for (name, service) in services {
        let mut rule = |holds: bool, what: &str| {
            if !holds {
                faults.push(format!("{name}: {what}"));
            }
        };
        let ours = service["image"].as_str().is_some_and(|image| image.contains("durable-mcp"));
        let tag = service["image"].as_str().and_then(|image| image.rsplit_once(':')).map(|(_, tag)| tag);
        rule(tag.is_some_and(|tag| tag != "latest"), "its image has no version");
        rule(!ours || tag == Some(version()), "its image is of another version");
        for published in strings(&service["ports"]) {
            let parts: Vec<&str> = published.split(':').collect();
            rule(parts.len() == 3 && parts[0] == "127.0.0.1", "it is published beyond this machine");
            rule(parts.last() == Some(&port.to_string().as_str()), "nobody listens on the published port");
        }
        let limits = &service["deploy"]["resources"]["limits"];
        rule(limits["cpus"].is_string() && limits["memory"].is_string(), "it has no limits");
        let used: BTreeSet<String> = strings(&service["secrets"]).into_iter().collect();
        rule(used.iter().all(|secret| file["secrets"][secret]["file"].is_string()), "its secret is no file");
        for (variable, value) in service["environment"].as_object().into_iter().flatten() {
            let secret =
                ["PASSWORD", "SECRET"].iter().any(|word| variable.contains(word)) && !variable.ends_with("_FILE");
            rule(!secret, "a secret is in its environment");
            rule(value.is_string(), "a variable is no text");
        }
        if !ours {
            rule(service["healthcheck"]["test"].is_array(), "nobody knows whether it is well");
            continue;
        }
        rule(service["read_only"] == true, "its files can be changed");
        rule(strings(&service["cap_drop"]) == ["ALL"], "it has capabilities");
        rule(strings(&service["security_opt"]).contains(&"no-new-privileges:true".to_owned()), "it may gain rights");
        for mount in strings(&service["volumes"]).iter().filter(|mount| mount.starts_with("./")) {
            let source = mount.split(':').next().unwrap_or_default();
            rule(root().join(source).is_file(), &format!("{source} is not there"));
            rule(mount.ends_with(":ro"), "it may change its configuration");
        }
        let waits_for = |other: &str, condition: &str| service["depends_on"][other]["condition"] == condition;
        rule(waits_for("database", "service_healthy"), "it does not wait for the database");
        let command = strings(&service["command"]);
        if let Some(refused) = refuses(&command) {
            rule(false, &refused);
        }
        if command != ["serve"] {
            rule(command.starts_with(&["db".into(), "migrate".into()]), "it does neither serve nor migrate");
            rule(service["restart"] == "no", "it would apply the schema for ever");
            continue;
        }
        *roles.entry(service["environment"]["DURABLE_MCP_ROLES"].as_str().unwrap_or("all").to_owned()).or_default() +=
            1;
        rule(waits_for("migrate", "service_completed_successfully"), "it does not wait for the schema");
        rule(service["restart"] == "unless-stopped", "nobody starts it again");
        let patience = service["stop_grace_period"].as_str().map_or(0, millis);
        rule(patience > grace, "it is killed before its grace time is over");
        let test = strings(&service["healthcheck"]["test"]);
        rule(test.starts_with(&["CMD".into(), "/durable-mcp".into()]), "nobody knows whether it is well");
        if let Some(refused) = refuses(test.get(2..).unwrap_or_default()) {
            rule(false, &refused);
        }
    }
    let wanted = BTreeMap::from([("mcp".to_owned(), 2), ("worker".to_owned(), 2), ("scheduler".to_owned(), 1)]);
    if roles != wanted {
        faults.push(format!("the roles are {roles:?}"));
    }
    for secret in file["secrets"].as_object().into_iter().flatten().filter_map(|(_, secret)| secret["file"].as_str()) {
        let folder = secret.trim_start_matches('.').rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
        if !folder.is_some_and(|folder| text(".gitignore").lines().any(|line| line == folder)) {
            faults.push(format!("{secret} could be committed"));
        }
    }
    faults
}

#[test]
fn the_compose_file_is_a_whole_installation_that_nobody_else_reaches() {
    assert_found(
        &text("compose.yaml"),
        compose_faults,
        &[
            ("127.0.0.1:7400:7400", "7400:7400", "beyond this machine"),
            ("127.0.0.1:7401:7400", "127.0.0.1:7401:80", "nobody listens"),
            ("durable-mcp:0.1.0}", "durable-mcp:0.0.1}", "another version"),
            ("postgres:18.1-bookworm", "postgres:latest", "no version"),
            ("read_only: true", "read_only: false", "can be changed"),
            ("cap_drop: [ALL]", "cap_drop: []", "capabilities"),
            ("no-new-privileges:true", "no-new-privileges:false", "gain rights"),
            ("stop_grace_period: 35s", "stop_grace_period: 10s", "killed before"),
            (
                "migrate: { condition: service_completed_successfully }",
                "migrate: { condition: service_started }",
                "schema",
            ),
            ("database: { condition: service_healthy }", "database: { condition: service_started }", "the database"),
            ("doctor, --ready]", "doctor, --well]", "--well"),
            ("DURABLE_MCP_ROLES: scheduler", "DURABLE_MCP_ROLES: worker", "the roles are"),
            ("POSTGRES_PASSWORD_FILE", "POSTGRES_PASSWORD", "in its environment"),
            ("file: ./deploy/secrets/", "file: ./deploy/", "could be committed"),
            ("file: ./deploy/secrets/database_password", "environment: DATABASE_PASSWORD", "no file"),
            ("durable-mcp.production.toml:/etc", "durable-mcp.lost.toml:/etc", "is not there"),
            ("durable-mcp.toml:ro", "durable-mcp.toml", "change its configuration"),
            ("command: [serve]", "command: [serv]", "serv"),
            ("${CRM_TOKEN:-}", "${CRM_TOKEN}", "no default"),
            ("limits: { cpus: \"1\", memory: 512M }", "limits: { cpus: \"1\" }", "no limits"),
            ("restart: unless-stopped\n  stop", "restart: never\n  stop", "starts it again"),
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_service_is_started_with_a_configuration_that_holds() {
    let folder = crate::support::scratch();
    std::fs::write(folder.path().join("database_password"), "6b1f0a9c2d\n").unwrap();
    let production = text("deploy/durable-mcp.production.toml");
    let config = folder.path().join("durable-mcp.toml");
    std::fs::write(&config, production.replace("/run/secrets", folder.path().to_str().unwrap())).unwrap();
    let compose = &yaml(&interpolated(&text("compose.yaml"), &mut Vec::new()))[0];
    let kubernetes = yaml(&text("deploy/kubernetes/durable-mcp.yaml"));
    let pods = kubernetes.iter().filter(|document| document["kind"] == "Deployment").map(|deployment| {
        let variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().iter();
        let variables = variables.map(|one| (one["name"].as_str().unwrap().to_owned(), one["value"].clone()));
        json!(variables.collect::<serde_json::Map<String, Value>>())
    });
    let services = compose["services"].as_object().unwrap().values().map(|service| service["environment"].clone());
    let mut checked = 0;
    for environment in services.chain(pods).filter(|environment| environment["DURABLE_MCP_ROLES"].is_string()) {
        let mut command = tokio::process::Command::new(crate::support::program_binary());
        command.args(["config", "check", "--config", config.to_str().unwrap()]).env_clear().env("HOME", folder.path());
        for (name, value) in environment.as_object().unwrap().iter().filter(|(name, _)| *name != "DURABLE_MCP_CONFIG") {
            command.env(name, value.as_str().unwrap());
        }
        let ran = command.output().await.unwrap();
        // An unknown variable is a warning; what we ship has none.
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && !said.contains("warning"), "{environment}: {said}");
        checked += 1;
    }
    assert!(checked >= 8, "{checked} were checked");
}
