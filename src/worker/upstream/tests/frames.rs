//! Frames: lines in any chunks, bounded, with the id of a line that is too long.

use proptest::prelude::*;
use tokio::io::AsyncWriteExt;

use super::super::frames::{Frame, Frames};
use super::soon;

async fn frames_of(chunks: Vec<Vec<u8>>, max_bytes: usize) -> Vec<Frame> {
    let (mut writer, reader) = tokio::io::duplex(64);
    let writing = tokio::spawn(async move {
        for chunk in chunks {
            writer.write_all(&chunk).await.unwrap();
        }
    });
    let mut frames = Frames::new(reader, max_bytes);
    let mut seen = Vec::new();
    while let Some(frame) = soon(frames.next()).await.unwrap() {
        seen.push(frame);
    }
    writing.await.unwrap();
    seen
}

#[tokio::test]
async fn a_last_line_without_its_line_break_counts() {
    let seen = frames_of(vec![b"{}\n{\"a\"".to_vec(), b":1}".to_vec()], 100).await;
    assert_eq!(seen, [Frame::Whole(b"{}".to_vec()), Frame::Whole(b"{\"a\":1}".to_vec())]);
}

#[tokio::test]
async fn a_line_over_the_bound_is_dropped_and_the_next_one_is_read() {
    let big = "x".repeat(5_000);
    for (line, id) in [
        (format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"id":9,"text":"{big}"}}}}"#), Some(7)),
        (format!(r#"{{"result":{{"text":"\"id\":3,{big}\\","n":[{{"id":4}}]}},"jsonrpc":"2.0","id": "8" }}"#), Some(8)),
        (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"a/b","params":"{big}"}}"#), None),
        (format!(r#"{{"jsonrpc":"2.0","method":"a/b","params":{{"id":7,"t":"{big}"}}}}"#), None),
        (big.clone(), None),
    ] {
        let seen = frames_of(vec![line.into_bytes(), b"\n{}\n".to_vec()], 1_000).await;
        assert_eq!(seen, [Frame::TooLong { id }, Frame::Whole(b"{}".to_vec())]);
    }
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_frames(
        lines in prop::collection::vec("[a-z{}\":,0-9]{0,40}", 0..6),
        cuts in prop::collection::vec(0_usize..200, 0..8),
    ) {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes();
        let chunks = super::sse::cut(&text, &cuts);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let whole = runtime.block_on(frames_of(vec![text], 30));
        let cut = runtime.block_on(frames_of(chunks, 30));
        prop_assert_eq!(whole, cut);
    }
}
