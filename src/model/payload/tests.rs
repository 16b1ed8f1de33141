//! Shared texts: what is copied and what is not, and that the bytes stay.

use super::{LONG_BYTES, Payload};

fn long() -> String {
    format!("[\"{}\"]", "é".repeat(LONG_BYTES))
}

#[test]
fn a_long_part_of_a_message_is_the_messages_own_memory_and_a_short_one_is_not() {
    for (text, is_shared) in [(long(), true), ("[1.0]".to_owned(), false)] {
        let message = format!("{{\"result\":{text}}}");
        let at = message.as_ptr() as usize + 10;
        let part = Payload::part(message, 10..10 + text.len());
        assert_eq!(*part, text);
        assert_eq!((part.as_ptr() as usize == at, part.is_long()), (is_shared, is_shared));
        let bytes = part.bytes();
        assert_eq!((bytes.as_ptr(), &bytes[..]), (part.as_ptr(), text.as_bytes()));
        assert_eq!(part.clone().as_ptr(), part.as_ptr());
    }
}

#[test]
fn a_text_on_one_line_stays_where_it_is_and_others_who_have_it_see_no_change() {
    let broken = long().replacen('[', "[\r\n", 1);
    let alone = Payload::from(broken.clone());
    let at = alone.as_ptr();
    let line = alone.one_line();
    assert_eq!((line.as_ptr(), &*line), (at, &*broken.replacen("\r\n", "  ", 1)));
    assert_eq!(line.clone().one_line().as_ptr(), at, "there is nothing to do");
    let shared = Payload::from(broken.clone());
    assert_eq!((shared.clone().one_line(), &*shared), (line, &*broken));
    assert_eq!(&*Payload::from("[1,\n2]").one_line(), "[1, 2]");
}
