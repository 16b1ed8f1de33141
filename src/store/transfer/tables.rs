//! The tables that travel, column by column, as both schemas have them. A test compares the list with the migrations, so
//! that no new column is forgotten. A change here is a new `archive::FORMAT`.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number or a time.
    Number,
    /// Yes or no.
    Flag,
    /// An id: text in SQLite.
    Id,
    /// The id of a write: bytes in SQLite.
    Operation,
    /// A text.
    Text,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may be absent.
    pub optional: bool,
}

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The column whose id says in which shard a row is, on servers that have shards.
    pub sharded_by: Option<&'static str>,
    /// The rows that travel; absent: all.
    pub only: Option<&'static str>,
    /// Its columns, the shard apart.
    pub columns: &'static [Column],
}

impl Table {
    /// The names of the columns, as a statement lists them.
    pub fn column_list(&self) -> String {
        self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    /// The condition on the rows that travel, as the end of a statement.
    pub fn condition(&self) -> String {
        self.only.map_or(String::new(), |only| format!(" WHERE {only}"))
    }
}

/// The table of this name.
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name)
}

/// Tables that stay: what a process or a program writes for itself, what is counted again from the log, and what
/// migrations ran.
pub const NOT_CARRIED: &[&str] = &[
    "processes",
    "store_checks",
    "worker_changes",
    "series",
    "series_closed",
    "refinery_schema_history",
    "schema_history",
    "schema_guard",
];

/// Columns that stay, by table: they concern a write whose outcome is not known yet, and a copy waits for none.
pub const NOT_CARRIED_COLUMNS: &[(&str, &str)] = &[("input_requests", "asked_in"), ("input_requests", "closed_in")];

const fn some(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, optional: false }
}

const fn perhaps(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, optional: true }
}

/// The tables, in the order in which they travel: executions last, so that what belongs to one is there before it is.
pub const TABLES: &[Table] = &[
    Table {
        name: "policies",
        sharded_by: None,
        only: None,
        columns: &[some("id", Kind::Text), some("policy", Kind::Text)],
    },
    Table {
        name: "execution_events",
        sharded_by: Some("execution_id"),
        only: None,
        columns: &[
            some("execution_id", Kind::Id),
            some("seq", Kind::Number),
            some("at_ms", Kind::Number),
            some("type", Kind::Text),
            some("body", Kind::Text),
            some("operation", Kind::Operation),
        ],
    },
    Table {
        name: "payloads",
        sharded_by: Some("execution_id"),
        only: None,
        columns: &[
            some("execution_id", Kind::Id),
            some("kind", Kind::Text),
            some("chunk", Kind::Number),
            some("body", Kind::Text),
        ],
    },
    Table {
        name: "steps",
        sharded_by: Some("execution_id"),
        only: None,
        columns: &[
            some("execution_id", Kind::Id),
            some("name", Kind::Text),
            some("result", Kind::Text),
            some("fencing_token", Kind::Number),
            some("at_ms", Kind::Number),
        ],
    },
    Table {
        name: "checkpoints",
        sharded_by: Some("execution_id"),
        only: None,
        columns: &[
            some("execution_id", Kind::Id),
            some("body", Kind::Text),
            some("fencing_token", Kind::Number),
            some("at_ms", Kind::Number),
        ],
    },
    Table {
        name: "input_requests",
        sharded_by: Some("execution_id"),
        only: None,
        columns: &[
            some("execution_id", Kind::Id),
            some("number", Kind::Number),
            some("round", Kind::Number),
            some("attempt", Kind::Number),
            some("parked", Kind::Flag),
            some("key", Kind::Text),
            some("name", Kind::Text),
            some("method", Kind::Text),
            some("params", Kind::Text),
            some("params_hash", Kind::Text),
            perhaps("state", Kind::Text),
            some("asked_at_ms", Kind::Number),
            perhaps("outcome", Kind::Text),
            perhaps("answer", Kind::Text),
            perhaps("answer_hash", Kind::Text),
            perhaps("answered_at_ms", Kind::Number),
            perhaps("answered_by", Kind::Text),
        ],
    },
    Table {
        name: "tasks",
        sharded_by: Some("execution_id"),
        only: None,
        columns: &[
            some("execution_id", Kind::Id),
            some("namespace", Kind::Text),
            some("principal", Kind::Text),
            some("variant", Kind::Text),
            some("ttl_ms", Kind::Number),
            some("created_at_ms", Kind::Number),
            some("expires_at_ms", Kind::Number),
            some("on_expiry", Kind::Text),
            perhaps("shown_seq", Kind::Number),
            perhaps("progress_token", Kind::Text),
        ],
    },
    Table {
        name: "idempotency_keys",
        sharded_by: None,
        only: None,
        columns: &[
            some("namespace", Kind::Text),
            some("upstream", Kind::Text),
            some("tool", Kind::Text),
            some("key", Kind::Text),
            some("execution_id", Kind::Id),
            some("ttl_ms", Kind::Number),
        ],
    },
    Table {
        name: "sessions",
        sharded_by: None,
        only: None,
        columns: &[
            some("key", Kind::Text),
            some("namespace", Kind::Text),
            some("namespace_name", Kind::Text),
            some("principal", Kind::Text),
            some("revision", Kind::Text),
            perhaps("client_name", Kind::Text),
            perhaps("client_info", Kind::Text),
            perhaps("capabilities", Kind::Text),
            perhaps("log_level", Kind::Text),
            some("created_at_ms", Kind::Number),
            some("last_seen_at_ms", Kind::Number),
            perhaps("closed_at_ms", Kind::Number),
        ],
    },
    Table {
        name: "session_subscriptions",
        sharded_by: None,
        only: None,
        columns: &[some("session_key", Kind::Text), some("uri", Kind::Text)],
    },
    Table {
        name: "session_messages",
        sharded_by: None,
        only: None,
        columns: &[
            some("session_key", Kind::Text),
            some("stream", Kind::Text),
            some("seq", Kind::Number),
            perhaps("request_id", Kind::Text),
            perhaps("execution_id", Kind::Id),
            perhaps("name", Kind::Text),
            some("body", Kind::Text),
            some("at_ms", Kind::Number),
        ],
    },
    Table {
        name: "sealing_keys",
        sharded_by: None,
        only: None,
        columns: &[some("generation", Kind::Number), some("key", Kind::Text), some("created_at_ms", Kind::Number)],
    },
    Table {
        name: "tokens",
        sharded_by: None,
        only: None,
        columns: &[
            some("prefix", Kind::Text),
            some("sha256", Kind::Text),
            some("principal", Kind::Text),
            some("namespace", Kind::Text),
            some("scopes", Kind::Text),
            some("created_at_ms", Kind::Number),
            perhaps("expires_at_ms", Kind::Number),
            perhaps("revoked_at_ms", Kind::Number),
        ],
    },
    Table {
        name: "upstreams",
        sharded_by: None,
        only: None,
        columns: &[some("name", Kind::Text), some("snapshot", Kind::Text), some("updated_at_ms", Kind::Number)],
    },
    Table {
        name: "workers",
        sharded_by: None,
        only: Some("kind = 'remote'"),
        columns: &[
            some("id", Kind::Id),
            some("name", Kind::Text),
            some("namespace", Kind::Text),
            some("principal", Kind::Text),
            some("kind", Kind::Text),
            some("slots", Kind::Number),
            perhaps("sdk", Kind::Text),
            some("tools", Kind::Text),
            some("lease_key", Kind::Text),
            some("registered_at_ms", Kind::Number),
            some("last_seen_at_ms", Kind::Number),
            some("silent_at_ms", Kind::Number),
            some("draining", Kind::Flag),
            perhaps("gone_at_ms", Kind::Number),
        ],
    },
    Table {
        name: "executions",
        sharded_by: Some("id"),
        only: None,
        columns: &[
            some("id", Kind::Id),
            some("namespace", Kind::Text),
            some("upstream", Kind::Text),
            some("tool", Kind::Text),
            perhaps("key", Kind::Text),
            some("principal", Kind::Text),
            some("caller", Kind::Text),
            some("arguments_hash", Kind::Text),
            some("policy_id", Kind::Text),
            perhaps("effect_key", Kind::Id),
            perhaps("retry_of", Kind::Id),
            perhaps("bound_to", Kind::Id),
            perhaps("start_by_ms", Kind::Number),
            some("state", Kind::Text),
            some("attempt", Kind::Number),
            some("attempts_allowed", Kind::Number),
            some("fencing_token", Kind::Number),
            perhaps("lease_worker", Kind::Text),
            perhaps("lease_process", Kind::Id),
            perhaps("lease_expires_at_ms", Kind::Number),
            some("effect_possible", Kind::Flag),
            some("continues", Kind::Flag),
            some("run_at_ms", Kind::Number),
            perhaps("deadline_at_ms", Kind::Number),
            some("created_at_ms", Kind::Number),
            some("updated_at_ms", Kind::Number),
            perhaps("ended_at_ms", Kind::Number),
            some("next_seq", Kind::Number),
            some("is_error", Kind::Flag),
            perhaps("source", Kind::Text),
            perhaps("error_code", Kind::Text),
            perhaps("error_message", Kind::Text),
            perhaps("effect", Kind::Text),
            some("notes", Kind::Number),
            some("version", Kind::Number),
            perhaps("waiter", Kind::Id),
            perhaps("delivered_at_ms", Kind::Number),
            some("handle_given", Kind::Flag),
            some("payloads_kept", Kind::Flag),
            some("waited_ms", Kind::Number),
            perhaps("waiting_since_ms", Kind::Number),
        ],
    },
];
