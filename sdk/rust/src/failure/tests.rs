//! Which error means what, after `?`.

use super::*;

fn kind(result: Result<(), Failure>) -> Kind {
    result.unwrap_err().0
}

#[test]
fn errors_keep_their_meaning_through_a_question_mark() {
    let no = || -> Result<(), Failure> { Err(ToolError::new("no"))? };
    assert!(matches!(kind(no()), Kind::ToolError(message) if message == "no"));
    let later = || -> Result<(), Failure> { Err(Retry::new("later").after(Duration::from_secs(1)).not_started())? };
    let second = Duration::from_secs(1);
    assert!(matches!(kind(later()), Kind::Retry { after: Some(after), not_started: true, .. } if after == second));
    let stopped = || -> Result<(), Failure> { Err(Cancelled)? };
    assert!(matches!(kind(stopped()), Kind::Cancelled));
}

#[test]
fn other_errors_are_named_by_their_type() {
    let broken = || -> Result<(), Failure> { Err(std::io::Error::other("broken"))? };
    let Kind::Other { code, message } = kind(broken()) else { panic!("another kind") };
    assert_eq!((code.as_str(), message.as_str()), ("error.Error", "broken"));
    assert_eq!(short_name("a::b::Failed<c::D>"), "b.Failed");
    assert_eq!(short_name("Plain"), "Plain");
}
