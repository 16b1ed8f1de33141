//! What is read from the log of a `serve`.

use super::address_in;

#[test]
fn an_address_is_read_only_from_a_whole_line() {
    let line = "durable-mcp 0.1.0 listens on http://127.0.0.1:7400/mcp\n";
    for cut in 0..line.len() {
        assert_eq!(address_in(&line[..cut]), None, "{cut}");
    }
    assert_eq!(address_in(&format!("warning: x\n{line}  tool")), Some("http://127.0.0.1:7400/mcp"));
}
