//! Durations and sizes as people write them: `"30s"`, `"7d"`, `"4MiB"`; kept as integers. Knows no calendar: a day is
//! 24 hours, and nothing longer than a day has a unit.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// The longest duration that a setting takes: ten years. Longer ones are typing mistakes.
pub const LONGEST_MS: i64 = 3650 * 86_400_000;

const DURATION_UNITS: [(&str, i64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// A duration in integer milliseconds, written as `"500ms"`, `"30s"`, `"10m"`, `"1h30m"` or `"7d"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub i64);

/// A size in bytes, written as a number or as `"4MiB"` (binary) or `"4MB"` (decimal).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Millis {
    /// The same span for the timers of the runtime.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0.unsigned_abs())
    }

    /// Reads a duration. `None` when the text is no duration or is longer than [`LONGEST_MS`].
    pub fn parse(text: &str) -> Option<Self> {
        if text == "0" {
            return Some(Self(0));
        }
        let mut rest = text;
        let mut total: i64 = 0;
        let mut smallest = i64::MAX;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let number: i64 = rest[..digits].parse().ok()?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let (_, unit_ms) = DURATION_UNITS.iter().find(|(name, _)| *name == &rest[..letters])?;
            // Units fall from left to right: "30s1h" is more likely a slip than a wish.
            if *unit_ms >= smallest {
                return None;
            }
            smallest = *unit_ms;
            rest = &rest[letters..];
            total = total.checked_add(number.checked_mul(*unit_ms)?)?;
        }
        (!text.is_empty() && total <= LONGEST_MS).then_some(Self(total))
    }
}

impl fmt::Display for Millis {
    /// Writes the shortest form in one unit: `90s`, `10m`, `500ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit_ms) =
            DURATION_UNITS.iter().find(|(_, unit_ms)| self.0 != 0 && self.0 % unit_ms == 0).unwrap_or(&("s", 1_000));
        write!(f, "{}{name}", self.0 / unit_ms)
    }
}

impl Bytes {
    /// Reads a size. `None` when the text is no size.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..digits].parse().ok()?;
        let unit = text[digits..].trim_start();
        let factor = if unit.is_empty() { 1 } else { SIZE_UNITS.iter().find(|(name, _)| *name == unit)?.1 };
        number.checked_mul(factor).filter(|bytes| i64::try_from(*bytes).is_ok()).map(Self)
    }

    /// The size as the length of something in memory.
    pub fn len(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Whether the size is zero.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIZE_UNITS[..3].iter().find(|(_, unit)| self.0 != 0 && self.0.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("expected a duration such as \"30s\""))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(bytes) => Some(Self(bytes)),
            Written::Text(text) => Self::parse(&text),
        }
        .ok_or_else(|| de::Error::custom("expected a size such as \"4MiB\""))
    }
}

// Only defaults in the schema are written by these two.
impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Millis {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "x-format": "duration" })
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "x-format": "size" })
    }
}
