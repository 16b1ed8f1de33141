//! The protocol revisions and what differs between them: one row each, and the negotiation of `initialize`.
//! Decides nothing about a single request; see `era`.

#[cfg(test)]
mod tests;

/// How a revision carries its version: by a handshake and a session, or on each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Up to 2025-11-25: `initialize`, sessions.
    Legacy,
    /// 2026-07-28: stateless, `_meta` on each request.
    Modern,
}

/// A protocol revision; later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// Which shape of tasks a revision has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasks {
    None,
    /// The experimental core feature: the client asks with `params.task`.
    Core,
    /// The extension `io.modelcontextprotocol/tasks`: the server decides.
    Extension,
}

/// What `structuredContent` of a result may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructuredContent {
    None,
    Object,
    AnyValue,
}

/// What differs between revisions. Source: the changelogs of the specification.
#[derive(Debug)]
pub struct Facts {
    pub revision: Revision,
    pub name: &'static str,
    pub era: Era,
    /// Arrays of messages are accepted.
    pub batches: bool,
    /// HTTP requests after `initialize` carry the header `MCP-Protocol-Version`.
    pub version_header: bool,
    /// Progress notifications may carry a `message`.
    pub progress_message: bool,
    /// Tools may carry `annotations`, results may carry audio.
    pub tool_annotations: bool,
    /// Tools may carry `title` and `outputSchema`, results `_meta` and `resource_link`.
    pub output_schema: bool,
    pub structured_content: StructuredContent,
    pub icons: bool,
    pub tasks: Tasks,
    /// A stream starts with an event of empty data, and may be closed and resumed.
    pub priming_event: bool,
    /// The server may send requests of its own.
    pub server_requests: bool,
    /// Every result carries `resultType`, lists carry `ttlMs` and `cacheScope`.
    pub result_type: bool,
    /// `ping`, `logging/setLevel`, `resources/subscribe` exist.
    pub session_methods: bool,
}

/// All revisions, oldest first. 2024-11-05 is silent on batches; JSON-RPC 2.0 has them, so they are accepted there.
pub static REVISIONS: [Facts; 5] = [
    Facts {
        revision: Revision::V2024_11_05,
        name: "2024-11-05",
        era: Era::Legacy,
        batches: true,
        version_header: false,
        progress_message: false,
        tool_annotations: false,
        output_schema: false,
        structured_content: StructuredContent::None,
        icons: false,
        tasks: Tasks::None,
        priming_event: false,
        server_requests: true,
        result_type: false,
        session_methods: true,
    },
    Facts {
        revision: Revision::V2025_03_26,
        name: "2025-03-26",
        era: Era::Legacy,
        batches: true,
        version_header: false,
        progress_message: true,
        tool_annotations: true,
        output_schema: false,
        structured_content: StructuredContent::None,
        icons: false,
        tasks: Tasks::None,
        priming_event: false,
        server_requests: true,
        result_type: false,
        session_methods: true,
    },
    Facts {
        revision: Revision::V2025_06_18,
        name: "2025-06-18",
        era: Era::Legacy,
        batches: false,
        version_header: true,
        progress_message: true,
        tool_annotations: true,
        output_schema: true,
        structured_content: StructuredContent::Object,
        icons: false,
        tasks: Tasks::None,
        priming_event: false,
        server_requests: true,
        result_type: false,
        session_methods: true,
    },
    Facts {
        revision: Revision::V2025_11_25,
        name: "2025-11-25",
        era: Era::Legacy,
        batches: false,
        version_header: true,
        progress_message: true,
        tool_annotations: true,
        output_schema: true,
        structured_content: StructuredContent::Object,
        icons: true,
        tasks: Tasks::Core,
        priming_event: true,
        server_requests: true,
        result_type: false,
        session_methods: true,
    },
    Facts {
        revision: Revision::V2026_07_28,
        name: "2026-07-28",
        era: Era::Modern,
        batches: false,
        version_header: true,
        progress_message: true,
        tool_annotations: true,
        output_schema: true,
        structured_content: StructuredContent::AnyValue,
        icons: true,
        tasks: Tasks::Extension,
        priming_event: false,
        server_requests: false,
        result_type: true,
        session_methods: false,
    },
];

impl Revision {
    /// What `initialize` answers when the client asks for something that is not a legacy revision.
    pub const LATEST_LEGACY: Revision = Revision::V2025_11_25;
    /// The revision without sessions.
    pub const MODERN: Revision = Revision::V2026_07_28;
    /// What a legacy HTTP request without a version header speaks (specification 2025-06-18, transports).
    pub const ASSUMED: Revision = Revision::V2025_03_26;

    /// Finds a revision by its exact name.
    pub fn find(name: &str) -> Option<Revision> {
        REVISIONS.iter().find(|facts| facts.name == name).map(|facts| facts.revision)
    }

    /// The revision that `initialize` answers: the requested one if it is legacy and known, else the latest legacy one.
    pub fn negotiate(requested: &str) -> Revision {
        match Revision::find(requested) {
            Some(revision) if revision.era() == Era::Legacy => revision,
            _ => Revision::LATEST_LEGACY,
        }
    }

    pub fn facts(self) -> &'static Facts {
        &REVISIONS[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether the revision has per-request `_meta` instead of `initialize`.
    pub fn is_modern(self) -> bool {
        self.era() == Era::Modern
    }

    pub fn era(self) -> Era {
        self.facts().era
    }
}

/// The revisions that a modern request may name, as `server/discover` and -32022 list them.
pub fn modern_names() -> Vec<&'static str> {
    REVISIONS.iter().filter(|facts| facts.era == Era::Modern).map(|facts| facts.name).collect()
}
