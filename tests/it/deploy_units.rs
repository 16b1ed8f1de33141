//! The Kubernetes manifests and the systemd unit: what has to fit together fits, and each rule finds a planted fault. No
//! cluster is asked.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::repository::{assert_found, grace_and_port, millis, refuses, root, strings, text, version, yaml};

const CONFIGURATION: &str = "deploy/durable-mcp.production.toml";

/// Whether every label of a selector is among these.
fn selects(selector: &Value, labels: &Value) -> bool {
    let selector = selector.as_object().filter(|selector| !selector.is_empty());
    selector.is_some_and(|selector| selector.iter().all(|(name, value)| labels[name] == *value))
}

fn pod_faults(kind: &str, pod: &Value, all: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    let (grace, port) = grace_and_port(CONFIGURATION);
    let user = &pod["securityContext"];
    rule(user["runAsNonRoot"] == true && user["runAsUser"].as_u64().is_some_and(|id| id >= 1000), "it may be root");
    rule(pod["automountServiceAccountToken"] == false, "it gets a token of the cluster that it never uses");
    let container = &pod["containers"][0];
    let image = container["image"].as_str().unwrap_or_default();
    rule(image.ends_with(&format!(":{}", version())), "its image is of another version");
    let rights = &container["securityContext"];
    rule(rights["allowPrivilegeEscalation"] == false, "it may gain rights");
    rule(rights["readOnlyRootFilesystem"] == true, "its files can be changed");
    rule(strings(&rights["capabilities"]["drop"]) == ["ALL"], "it has capabilities");
    rule(container["resources"]["limits"]["memory"].is_string(), "it has no limits");
    rule(container["resources"]["requests"]["cpu"].is_string(), "nothing is set aside for it");
    if let Some(refused) = refuses(&strings(&container["args"])) {
        rule(false, &refused);
    }
    let volumes: BTreeSet<&str> =
        pod["volumes"].as_array().into_iter().flatten().filter_map(|volume| volume["name"].as_str()).collect();
    let mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
    rule(
        mounts.iter().all(|mount| volumes.contains(mount["name"].as_str().unwrap_or_default())),
        "a volume is missing",
    );
    let mounted: BTreeSet<&str> = mounts.iter().filter_map(|mount| mount["mountPath"].as_str()).collect();
    for path in ["/etc/durable-mcp", "/run/secrets", "/data"] {
        rule(mounted.contains(path), &format!("{path} is not mounted"));
    }
    let maps: Vec<&Value> = all.iter().filter(|document| document["kind"] == "ConfigMap").collect();
    let from = &container["envFrom"][0]["configMapRef"]["name"];
    let map = maps.iter().find(|map| map["metadata"]["name"] == *from);
    rule(
        map.is_some_and(|map| map["data"]["DURABLE_MCP_CONFIG"] == "/etc/durable-mcp/durable-mcp.toml"),
        "nobody names its configuration",
    );
    if kind == "Job" {
        rule(pod["restartPolicy"] == "Never", "a failed migration is hidden");
        return faults;
    }
    let variable = |name: &str| {
        let list = container["env"].as_array().into_iter().flatten();
        list.filter(|one| one["name"] == name).find_map(|one| one["value"].as_str()).map(str::to_owned)
    };
    let role = variable("DURABLE_MCP_ROLES").unwrap_or_default();
    rule(["mcp", "worker", "scheduler"].contains(&role.as_str()), "its role is none");
    let delay = variable("DURABLE_MCP_SERVER_DRAIN_DELAY").map_or(0, |delay| millis(&delay));
    let patience = pod["terminationGracePeriodSeconds"].as_i64().unwrap_or(30) * 1000;
    rule(patience >= grace + delay + 5000, "it is killed before its grace time is over");
    rule(container["ports"][0]["containerPort"].as_u64() == Some(port), "nobody listens on its port");
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        let asked = &container[probe]["httpGet"];
        rule(asked["path"] == path, &format!("its {probe} does not ask for {path}"));
        rule(asked["port"] == container["ports"][0]["name"], "a probe asks another port");
        // A host that is on no list is refused, and a probe by address would be.
        let host = asked["httpHeaders"].as_array().into_iter().flatten().find(|header| header["name"] == "Host");
        rule(host.is_some_and(|host| host["value"] == "localhost"), "a probe would be refused for its host");
    }
    // Readiness is asked often enough to turn clients away before a server stops to take connections.
    let asked_every = container["readinessProbe"]["periodSeconds"].as_i64().unwrap_or(10) * 1000;
    rule(role != "mcp" || asked_every < delay, "it stops before anybody notices");
    faults
}

fn manifest_faults(manifests: &str) -> Vec<String> {
    let all = yaml(manifests);
    let mut faults = Vec::new();
    let of = |kind: &'static str| all.iter().filter(move |document| document["kind"] == kind);
    let known = [
        ("ConfigMap", "v1"),
        ("Service", "v1"),
        ("Job", "batch/v1"),
        ("Deployment", "apps/v1"),
        ("PodDisruptionBudget", "policy/v1"),
    ];
    for document in &all {
        let (kind, version) = (document["kind"].as_str().unwrap_or_default(), document["apiVersion"].as_str());
        if !known.iter().any(|(known, api)| *known == kind && Some(*api) == version) {
            faults.push(format!("no {kind} is known in {version:?}"));
        }
    }
    let mut names: Vec<String> = all.iter().map(|one| format!("{} {}", one["kind"], one["metadata"]["name"])).collect();
    names.sort();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        faults.push("two have one name".into());
    }
    for document in of("Deployment").chain(of("Job")) {
        let (kind, name) = (document["kind"].as_str().unwrap(), &document["metadata"]["name"]);
        let template = &document["spec"]["template"];
        let mut found = pod_faults(kind, &template["spec"], &all);
        if kind == "Deployment" {
            let labels = &template["metadata"]["labels"];
            if !selects(&document["spec"]["selector"]["matchLabels"], labels) {
                found.push("it does not select its own pods".into());
            }
            let budgets =
                of("PodDisruptionBudget").filter(|one| selects(&one["spec"]["selector"]["matchLabels"], labels));
            if budgets.count() != 1 {
                found.push("no budget of its own keeps it alive".into());
            }
            if document["spec"]["replicas"].as_i64().unwrap_or(1) < 2 {
                found.push("a node that goes takes all of it".into());
            }
        }
        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    for service in of("Service") {
        let pods = of("Deployment")
            .filter(|one| selects(&service["spec"]["selector"], &one["spec"]["template"]["metadata"]["labels"]));
        let pods: Vec<&Value> = pods.collect();
        let served =
            pods.len() == 1 && pods[0]["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] == "mcp";
        if !served {
            faults.push("the service leads to others than the servers".into());
        }
    }
    if (of("Deployment").count(), of("Job").count(), of("Service").count()) != (3, 1, 1) {
        faults.push("a role is missing".into());
    }
    faults
}

#[test]
fn the_manifests_fit_the_program_and_each_other() {
    assert_found(
        &text("deploy/kubernetes/durable-mcp.yaml"),
        manifest_faults,
        &[
            ("apps/v1", "apps/v2", "is known in"),
            ("runAsNonRoot: true", "runAsNonRoot: false", "root"),
            ("durable-mcp:0.1.0", "durable-mcp:0.0.1", "another version"),
            ("allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "gain rights"),
            ("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "can be changed"),
            ("args: [db, migrate]", "args: [db, mitigate]", "mitigate"),
            ("args: [serve]", "args: [serve, --role]", "--role"),
            ("terminationGracePeriodSeconds: 40", "terminationGracePeriodSeconds: 30", "killed before"),
            ("path: /healthz", "path: /readyz", "livenessProbe"),
            ("path: /readyz", "path: /ready", "readinessProbe"),
            ("httpHeaders: [{ name: Host, value: localhost }]", "scheme: HTTP", "refused for its host"),
            ("periodSeconds: 2,", "periodSeconds: 20,", "before anybody notices"),
            ("value: worker", "value: workers", "role is none"),
            ("containerPort: 7400", "containerPort: 80", "listens"),
            ("limits: { memory: 512Mi }", "limits: {}", "no limits"),
            ("mountPath: /run/secrets", "mountPath: /run/secret", "/run/secrets is not mounted"),
            ("- { name: data, emptyDir", "- { name: dates, emptyDir", "volume is missing"),
            ("replicas: 2", "replicas: 1", "a node"),
            ("restartPolicy: Never", "restartPolicy: OnFailure", "hidden"),
            (
                "app.kubernetes.io/component: server }\n  ports",
                "app.kubernetes.io/component: worker }\n  ports",
                "leads to others",
            ),
            ("DURABLE_MCP_CONFIG: /etc", "DURABLE_MCP_CONFIG: /opt", "names its configuration"),
            ("name: durable-mcp-worker\n", "name: durable-mcp-server\n", "one name"),
        ],
    );
}

fn unit_faults(unit: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let value = |name: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().to_owned()
    };
    let config = "deploy/durable-mcp.host.toml";
    let (grace, _) = grace_and_port(config);
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    for name in ["ExecStart", "ExecStartPre"] {
        let words: Vec<String> = value(name).split(' ').map(str::to_owned).collect();
        rule(words[0] == "/usr/local/bin/durable-mcp", "it starts another program");
        rule(
            words.ends_with(&["--config".into(), "/etc/durable-mcp/durable-mcp.toml".into()]),
            "it is started without its configuration",
        );
        if let Some(refused) = refuses(&words[1..]) {
            rule(false, &refused);
        }
    }
    let patience = value("TimeoutStopSec");
    rule(!patience.is_empty() && millis(&patience) >= grace + 5000, "it is killed before its grace time is over");
    let state = format!("/var/lib/{}", value("StateDirectory"));
    let table: toml::Table = text(config).parse().unwrap();
    let folder = table["store"]["data_dir"].as_str().unwrap();
    rule(
        folder == state && table["store"]["url"].as_str() == Some(&format!("sqlite:{state}/durable-mcp.db")),
        "it may not write where its store is",
    );
    rule(value("StateDirectoryMode") == "0700", "others may read its store");
    rule(value("DynamicUser") == "yes", "it is root");
    rule(value("NoNewPrivileges") == "yes" && value("ProtectSystem") == "strict", "it may change the system");
    rule(value("Restart") == "always", "nobody starts it again");
    rule(unit.contains("WantedBy=multi-user.target"), "it does not start with the machine");
    rule(root().join(config).is_file(), "its configuration is not there");
    faults
}

#[test]
fn the_systemd_unit_fits_its_configuration() {
    assert_found(
        &text("deploy/systemd/durable-mcp.service"),
        unit_faults,
        &[
            ("TimeoutStopSec=35s", "TimeoutStopSec=20s", "killed before"),
            ("ExecStart=/usr/local/bin/durable-mcp serve", "ExecStart=/usr/local/bin/durable-mcp server", "server"),
            ("ExecStart=/usr/local/bin/", "ExecStart=/usr/bin/", "another program"),
            ("--config /etc/durable-mcp/durable-mcp.toml\nEnv", "\nEnv", "without its configuration"),
            ("StateDirectory=durable-mcp", "StateDirectory=durable", "may not write"),
            ("StateDirectoryMode=0700", "StateDirectoryMode=0755", "others may read"),
            ("DynamicUser=yes", "DynamicUser=no", "root"),
            ("ProtectSystem=strict", "ProtectSystem=no", "change the system"),
            ("Restart=always", "Restart=no", "starts it again"),
        ],
    );
}
