//! What is handed in elsewhere: `server.json` (the MCP registry), `server.yaml` (the container catalogue), and the workflow
//! that releases both. Their formats' rules are written here in our own words; nobody is asked over the network.

use serde_json::Value;

use crate::support::clients_folder;
use crate::support::repository::{assert_found, refuses, root, strings, text, version, yaml};

/// The words that a client would append to the image's entry point.
fn package_words(package: &Value) -> Vec<String> {
    let mut words = Vec::new();
    for argument in package["packageArguments"].as_array().into_iter().flatten() {
        words.extend(argument["name"].as_str().map(str::to_owned));
        words.extend(argument["value"].as_str().map(str::to_owned));
    }
    words
}

fn registry_faults(entry: &str) -> Vec<String> {
    let Ok(entry) = serde_json::from_str::<Value>(entry) else { return vec!["no JSON".into()] };
    let mut faults = Vec::new();
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    let all_of = |text: &str, also: &str| text.chars().all(|one| one.is_ascii_alphanumeric() || also.contains(one));
    let name = entry["name"].as_str().unwrap_or_default();
    let parts: Vec<&str> = name.split('/').collect();
    rule(
        parts.len() == 2 && all_of(parts[0], ".-") && all_of(parts[1], "._-") && (3..=200).contains(&name.len()),
        "the name is not of the form namespace/name",
    );
    for (member, most) in [("title", 100), ("description", 100)] {
        let length = entry[member].as_str().map_or(0, |text| text.chars().count());
        rule((1..=most).contains(&length), &format!("the {member} is empty or too long"));
    }
    rule(entry["version"] == version(), "it is of another version");
    let schema = entry["$schema"].as_str().unwrap_or_default();
    rule(schema.starts_with("https://static.modelcontextprotocol.io/schemas/20"), "the schema has no date");
    let source = entry["repository"]["url"].as_str().unwrap_or_default();
    let owner = source.strip_prefix("https://github.com/").and_then(|path| path.split('/').next()).unwrap_or("?");
    rule(
        entry["repository"]["source"] == "github" && parts[0] == format!("io.github.{owner}"),
        "the name is not its owner's",
    );
    let packages = entry["packages"].as_array().cloned().unwrap_or_default();
    rule(!packages.is_empty(), "there is nothing to run");
    for package in &packages {
        rule(package["registryType"] == "oci", "the package is of no registry that we release to");
        // An image's version is in its name.
        rule(package.get("version").is_none(), "an image has its version in its name");
        let wanted = format!("ghcr.io/{owner}/durable-mcp:{}", version());
        rule(package["identifier"] == wanted.as_str(), "it is another image");
        rule(package["transport"]["type"] == "stdio", "the program speaks something else here");
        let variables = package["environmentVariables"].as_array().cloned().unwrap_or_default();
        rule(variables.iter().all(|variable| variable["name"].is_string()), "a variable has no name");
        for variable in &variables {
            let name = variable["name"].as_str().unwrap_or_default();
            let hidden = ["TOKEN", "AUTHORIZATION", "PASSWORD"].iter().any(|word| name.contains(word));
            rule(!hidden || variable["isSecret"] == true, "a secret would be shown");
        }
        for list in ["packageArguments", "runtimeArguments"] {
            for argument in package[list].as_array().into_iter().flatten() {
                let whole = match argument["type"].as_str() {
                    Some("positional") => argument["value"].is_string() || argument["valueHint"].is_string(),
                    Some("named") => argument["name"].is_string(),
                    _ => false,
                };
                rule(whole, "an argument is not whole");
            }
        }
        let words = package_words(package);
        if let Some(refused) = refuses(&words) {
            rule(false, &refused);
        }
        // What the command reads from its environment is asked of the user.
        for flag in ["--url-env", "--header-env"] {
            let Some(at) = words.iter().position(|word| word == flag) else { continue };
            let read = words[at + 1].rsplit('=').next().unwrap();
            rule(variables.iter().any(|variable| variable["name"] == read), "nobody asks for what the command reads");
        }
    }
    faults
}

#[test]
fn the_entry_of_the_registry_holds_and_its_commands_are_taken() {
    assert_found(
        &text("server.json"),
        registry_faults,
        &[
            ("\"io.github.durable-mcp/durable-mcp\"", "\"durable-mcp\"", "namespace/name"),
            ("\"io.github.durable-mcp/durable-mcp\"", "\"io.github.else/durable-mcp\"", "owner's"),
            ("\"version\": \"0.1.0\"", "\"version\": \"latest\"", "another version"),
            ("durable-mcp:0.1.0\"", "durable-mcp:0.2.0\"", "another image"),
            ("\"oci\",", "\"oci\", \"version\": \"0.1.0\",", "in its name"),
            ("\"positional\", \"value\": \"wrap\"", "\"positional\"", "not whole"),
            ("\"value\": \"wrap\"", "\"value\": \"warp\"", "warp"),
            ("\"type\": \"named\", \"name\": \"--name\"", "\"type\": \"named\"", "not whole"),
            ("\"name\": \"UPSTREAM_URL\"", "\"name\": \"UPSTREAM\"", "nobody asks"),
            ("\"isSecret\": true,", "", "would be shown"),
            ("Makes the tool calls", &"Makes ".repeat(20), "too long"),
        ],
    );
}

fn catalogue_faults(entry: &str) -> Vec<String> {
    let entry = &yaml(entry)[0];
    let mut faults = Vec::new();
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    let name = entry["name"].as_str().unwrap_or_default();
    let plain = |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '-';
    rule(!name.is_empty() && name.chars().all(plain), "the name has other characters than a-z, 0-9 and -");
    rule(entry["image"] == format!("mcp/{name}"), "the image has another name");
    rule(entry["type"] == "server", "it is no server in a container");
    rule(entry["dynamic"]["tools"] == true, "its tools are those of the server behind it");
    rule(entry["meta"]["category"].is_string(), "it has no category");
    let title = entry["about"]["title"].as_str().unwrap_or_default();
    let large = title.split(' ').all(|word| word.starts_with(char::is_uppercase));
    rule(large && !title.contains("MCP") && !title.contains("Server"), "the title is not as the catalogue wants it");
    rule(entry["about"]["description"].as_str().is_some_and(|text| text.len() > 40), "it says too little of itself");
    let registry: Value = serde_json::from_str(&text("server.json")).unwrap();
    rule(entry["source"]["project"] == registry["repository"]["url"], "the sources are elsewhere");
    rule(entry["source"]["branch"] == format!("v{}", version()), "it is of another version");
    // A commit can not name itself: the release writes it.
    rule(entry["source"].get("commit").is_none(), "the commit is written by the release");
    let command = strings(&entry["run"]["command"]);
    if let Some(refused) = refuses(&command) {
        rule(false, &refused);
    }
    let image = text("Dockerfile");
    for volume in strings(&entry["run"]["volumes"]) {
        let to = volume.rsplit(':').next().unwrap().to_owned();
        rule(image.contains(&format!("VOLUME [\"{to}\"]")), "nothing is kept in its volume");
    }
    let parameters = &entry["config"]["parameters"]["properties"];
    for variable in entry["config"]["env"].as_array().into_iter().flatten() {
        let value = variable["value"].as_str().unwrap_or_default();
        let parameter =
            value.strip_prefix("{{").and_then(|value| value.strip_suffix("}}")?.strip_prefix(name)?.strip_prefix('.'));
        rule(parameter.is_some_and(|parameter| parameters[parameter].is_object()), "a variable is of no parameter");
    }
    for secret in entry["config"]["secrets"].as_array().into_iter().flatten() {
        let named = secret["name"].as_str().and_then(|secret| secret.split_once('.'));
        rule(named.is_some_and(|(prefix, rest)| prefix == name && !rest.is_empty()), "a secret has no prefix");
    }
    let given = |variable: &str| {
        let lists = ["env", "secrets"].map(|list| entry["config"][list].as_array().cloned().unwrap_or_default());
        lists.iter().flatten().any(|one| one["name"] == variable || one["env"] == variable)
    };
    for flag in ["--url-env", "--header-env"] {
        let Some(at) = command.iter().position(|word| word == flag) else { continue };
        rule(given(command[at + 1].rsplit('=').next().unwrap()), "nobody gives what the command reads");
    }
    faults
}

#[test]
fn the_entry_of_the_container_catalogue_holds_and_its_command_is_taken() {
    assert_found(
        &text("server.yaml"),
        catalogue_faults,
        &[
            ("name: durable-mcp\n", "name: DurableMCP\n", "other characters"),
            ("title: Durable Execution", "title: Durable MCP Server", "as the catalogue wants"),
            ("- wrap", "- warp", "warp"),
            ("durable-mcp:/data", "durable-mcp:/var", "its volume"),
            ("{{durable-mcp.upstream_url}}", "{{durable-mcp.url}}", "no parameter"),
            ("name: durable-mcp.upstream_authorization", "name: authorization", "prefix"),
            ("Authorization=UPSTREAM_AUTHORIZATION", "Authorization=OTHER", "nobody gives"),
            ("branch: v0.1.0", "branch: main", "another version"),
            ("  branch:", "  commit: 0123456789012345678901234567890123456789\n  branch:", "by the release"),
        ],
    );
}

fn workflow_faults(workflow: &str) -> Vec<String> {
    let file = &yaml(workflow)[0];
    let mut faults = Vec::new();
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    let jobs = file["jobs"].as_object().unwrap();
    rule(strings(&file["on"]["push"]["tags"]).iter().all(|tag| tag.starts_with('v')), "it is no tag that releases");
    rule(
        file["permissions"].as_object().is_some_and(|all| all.values().all(|one| one == "read")),
        "every job may write",
    );
    let mut steps = Vec::new();
    for (name, job) in jobs {
        rule(job["timeout-minutes"].is_number(), "a job may hang for ever");
        for other in strings(&job["needs"]).into_iter().chain(job["needs"].as_str().map(str::to_owned)) {
            rule(jobs.contains_key(&other), "a job waits for one that is not there");
        }
        rule(name == "check" || !job["needs"].is_null(), "something is built before it is checked");
        steps.extend(job["steps"].as_array().into_iter().flatten().map(|step| (name.as_str(), step)));
    }
    let targets: Vec<&str> = file["jobs"]["binaries"]["strategy"]["matrix"]["include"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["target"].as_str())
        .collect();
    for target in
        ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-apple-darwin", "aarch64-apple-darwin"]
    {
        rule(targets.contains(&target), &format!("no binary for {target}"));
    }
    let runs = |job: &str, what: &str| {
        steps.iter().any(|(of, step)| *of == job && step["run"].as_str().is_some_and(|run| run.contains(what)))
    };
    let uses = |job: &str, what: &str| {
        steps.iter().any(|(of, step)| *of == job && step["uses"].as_str().is_some_and(|uses| uses.starts_with(what)))
    };
    rule(runs("check", "bash .ci/run"), "what is released was not tested");
    rule(runs("check", "Cargo.toml"), "the tag may be of another version");
    rule(runs("binaries", "--release --locked"), "it is not built from the lock");
    rule(runs("release", "sha256sum"), "there are no checksums");
    for job in ["binaries", "release"] {
        rule(uses(job, "actions/attest-build-provenance@"), "there is no provenance");
        let may = &file["jobs"][job]["permissions"];
        rule(may["id-token"] == "write" && may["attestations"] == "write", "provenance can not be written");
    }
    for (_, step) in &steps {
        let Some(uses) = step["uses"].as_str() else { continue };
        rule(uses.rsplit_once('@').is_some_and(|(_, at)| at != "main" && at != "master"), "an action has no version");
        rule(
            !uses.starts_with("actions/checkout@") || step["with"]["persist-credentials"] == false,
            "credentials stay in the checkout",
        );
    }
    for (_, step) in &steps {
        let run = step["run"].as_str().unwrap_or_default();
        rule(!run.contains("${{"), "a text of others could become a command");
    }
    let image = file["env"]["IMAGE"].as_str().unwrap_or_default();
    let registry: Value = serde_json::from_str(&text("server.json")).unwrap();
    let named =
        registry["packages"][0]["identifier"].as_str().and_then(|name| name.rsplit_once(':')).map(|(name, _)| name);
    rule(named == Some(image), "it releases another image than the catalogue names");
    faults
}

#[test]
fn the_release_is_tested_static_signed_and_checksummed() {
    assert_found(
        &text(".github/workflows/release.yaml"),
        workflow_faults,
        &[
            ("permissions:\n  contents: read", "permissions:\n  contents: write", "every job"),
            ("aarch64-unknown-linux-musl, os", "aarch64-unknown-linux-gnu, os", "aarch64-unknown-linux-musl"),
            ("      - run: bash .ci/run\n", "", "not tested"),
            ("--release --locked", "--release", "from the lock"),
            ("sha256sum", "md5sum", "checksums"),
            ("      attestations: write", "      attestations: read", "can not be written"),
            ("actions/attest-build-provenance@v3", "actions/upload-artifact@v4", "no provenance"),
            ("docker/login-action@v3", "docker/login-action@main", "no version"),
            ("persist-credentials: false", "persist-credentials: true", "credentials"),
            ("test \"$TAG\"", "test \"${{ github.ref_name }}\"", "become a command"),
            ("needs: [binaries, image]", "needs: [binaries, images]", "not there"),
            ("IMAGE: ghcr.io/durable-mcp/", "IMAGE: ghcr.io/other/", "another image"),
            ("    timeout-minutes: 20\n", "", "for ever"),
        ],
    );
}

#[test]
fn the_release_writes_version_and_commit_into_the_entries() {
    let workflow = &yaml(&text(".github/workflows/release.yaml"))[0];
    let steps = workflow["jobs"]["release"]["steps"].as_array().unwrap();
    let run = steps.iter().filter_map(|step| step["run"].as_str()).find(|run| run.contains("server.yaml >")).unwrap();
    let folder = crate::support::scratch();
    std::fs::create_dir(folder.path().join("dist")).unwrap();
    for file in ["server.json", "server.yaml"] {
        std::fs::copy(root().join(file), folder.path().join(file)).unwrap();
    }
    let has_jq = std::process::Command::new("jq").arg("--version").output().is_ok_and(|ran| ran.status.success());
    // Without jq the other half is still run; the release's own machine has it.
    let script: String = match has_jq {
        true => run.to_owned(),
        false => {
            run.lines().filter(|line| line.contains("version=") || line.contains("sed ")).collect::<Vec<_>>().join("\n")
        }
    };
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let ran = std::process::Command::new("bash")
        .args(["-euo", "pipefail", "-c", &script])
        .current_dir(folder.path())
        .envs([("GITHUB_REF_NAME", "v9.8.7"), ("GITHUB_SHA", commit), ("IMAGE", "ghcr.io/durable-mcp/durable-mcp")])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let made = std::fs::read_to_string(folder.path().join("dist/server.yaml")).unwrap();
    let made = &yaml(&made)[0];
    assert_eq!((&made["source"]["branch"], &made["source"]["commit"]), (&Value::from("v9.8.7"), &Value::from(commit)));
    assert_eq!(made["run"]["command"][0], "wrap");
    if has_jq {
        let made = std::fs::read_to_string(folder.path().join("dist/server.json")).unwrap();
        let made: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(made["version"], "9.8.7");
        let images = made["packages"].as_array().unwrap().iter().map(|package| package["identifier"].as_str().unwrap());
        assert!(images.clone().count() == 2 && images.into_iter().all(|image| image.ends_with("/durable-mcp:9.8.7")));
    }
}

/// What a linter that others wrote says of a file; `None` when it is not installed, which only a place that is not CI may
/// overlook.
fn linted(file: &str, program: &str, arguments: &[&str], path: &std::path::Path) -> Option<(bool, String)> {
    let command = if program == "node" { "node".into() } else { clients_folder().join(".venv/bin").join(program) };
    let ran = std::process::Command::new(&command).args(arguments).arg(path).current_dir(clients_folder()).output();
    match ran {
        Ok(ran) => {
            let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            Some((ran.status.success(), said))
        }
        Err(error) if std::env::var_os("CI").is_none() => {
            eprintln!("SKIPPED: {file} is not looked at by {program}: {error}; `bash tests/setup.sh` installs it");
            None
        }
        Err(error) => panic!("{program}: {error}; in CI nothing may be skipped"),
    }
}

#[test]
fn linters_that_others_wrote_have_nothing_to_say() {
    let folder = crate::support::scratch();
    let lint = [
        ("Dockerfile", "hadolint", vec!["--failure-threshold", "style"], ("COPY . .", "RUN cd /tmp && sudo true")),
        (
            ".github/workflows/release.yaml",
            "zizmor",
            vec!["--offline", "--no-progress", "--quiet", "--config", "../../.github/zizmor.yml"],
            ("test \"$TAG\"", "test \"${{ github.event.head_commit.message }}\""),
        ),
        (".github/workflows/release.yaml", "node", vec!["lint_workflow.mjs"], ("needs.check", "needs.check")),
        (".github/workflows/ci.yaml", "node", vec!["lint_workflow.mjs"], ("${{ matrix.os }}", "${{ matrix.osx }}")),
    ];
    for (file, program, arguments, (from, to)) in lint {
        let good = text(file);
        let Some((well, said)) = linted(file, program, &arguments, &root().join(file)) else { continue };
        assert!(well, "{program} of {file}: {said}");
        if from == to {
            continue;
        }
        assert!(good.contains(from), "nothing to plant a fault in: {from}");
        let name = file.rsplit('/').next().unwrap();
        let planted = folder.path().join(".github/workflows").join(name);
        std::fs::create_dir_all(planted.parent().unwrap()).unwrap();
        std::fs::write(&planted, good.replacen(from, to, 1)).unwrap();
        let (well, said) = linted(file, program, &arguments, &planted).unwrap();
        assert!(!well, "{program} does not find {to:?} in {file}: {said}");
    }
}
