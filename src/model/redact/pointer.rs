//! JSON pointers (RFC 6901) with two more segments: `*` is any member or element, `**` any number of levels. Points only.

use super::Fault;

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Named(String),
    Any,
    Deep,
}

/// How far a pointer is matched: which, and how many of its segments.
pub(super) type State = (usize, usize);

impl Pointer {
    /// Reads a pointer.
    pub fn parse(text: &str) -> Result<Pointer, Fault> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(Fault::Pointer("it begins with no `/`"));
        };
        let segment = |part: &str| match part {
            "*" => Ok(Segment::Any),
            "**" => Ok(Segment::Deep),
            part => named(part).map(Segment::Named),
        };
        let segments = rest.split('/').map(segment).collect::<Result<Vec<_>, _>>()?;
        match segments.last() {
            Some(Segment::Deep) => Err(Fault::Pointer("`**` at its end names nothing; write what lies below")),
            _ => Ok(Pointer(segments)),
        }
    }
}

fn named(part: &str) -> Result<String, Fault> {
    let mut name = String::with_capacity(part.len());
    let mut chars = part.chars();
    while let Some(char) = chars.next() {
        match (char, if char == '~' { chars.next() } else { None }) {
            ('~', Some('0')) => name.push('~'),
            ('~', Some('1')) => name.push('/'),
            ('~', _) => return Err(Fault::Pointer("after `~` comes `0` or `1`")),
            (char, _) => name.push(char),
        }
    }
    Ok(name)
}

/// Where pointers stand at the whole text.
pub(super) fn begin(pointers: &[Pointer]) -> Vec<State> {
    closed(pointers, (0..pointers.len()).map(|pointer| (pointer, 0)).collect())
}

/// Where they stand one level further down, at the member or element of this name.
pub(super) fn step(pointers: &[Pointer], states: &[State], name: &str) -> Vec<State> {
    let further = |&(pointer, at): &State| match pointers[pointer].0.get(at)? {
        Segment::Named(wanted) if wanted != name => None,
        Segment::Named(_) | Segment::Any => Some((pointer, at + 1)),
        Segment::Deep => Some((pointer, at)),
    };
    closed(pointers, states.iter().filter_map(further).collect())
}

/// True when one of them names the value it stands at.
pub(super) fn names(pointers: &[Pointer], states: &[State]) -> bool {
    states.iter().any(|&(pointer, at)| at == pointers[pointer].0.len())
}

/// Any number of levels is also none.
fn closed(pointers: &[Pointer], mut states: Vec<State>) -> Vec<State> {
    let mut seen = 0;
    while let Some(&(pointer, at)) = states.get(seen) {
        seen += 1;
        if pointers[pointer].0.get(at) == Some(&Segment::Deep) && !states.contains(&(pointer, at + 1)) {
            states.push((pointer, at + 1));
        }
    }
    states
}
