//! Processes as the system shows them: who descends from whom, who is still there. A zombie counts as gone: it runs
//! nothing. Linux shows them in `/proc`; elsewhere `ps` is asked.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

/// One row of the process table.
#[derive(Clone, Debug)]
pub struct Row {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub zombie: bool,
}

/// All processes, as far as they may be seen.
pub fn table() -> Vec<Row> {
    if cfg!(target_os = "linux") {
        return proc_table();
    }
    let output = Command::new("ps").args(["-A", "-o", "pid=,ppid=,pgid=,state="]).output().unwrap().stdout;
    let row = |line: &str| {
        let mut fields = line.split_whitespace();
        let mut number = || fields.next()?.parse().ok();
        let (pid, parent, group) = (number()?, number()?, number()?);
        Some(Row { pid, parent, group, zombie: fields.next()?.starts_with('Z') })
    };
    String::from_utf8_lossy(&output).lines().filter_map(row).collect()
}

fn proc_table() -> Vec<Row> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(proc_row).collect()
}

fn proc_row(pid: u32) -> Option<Row> {
    // `pid (name) state parent group …`; the name may hold spaces and brackets.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let zombie = fields.next()? == "Z";
    Some(Row { pid, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()?, zombie })
}

/// The living descendants of a process, itself left out. Whoever lost its parent is no descendant any more: note the
/// pids before you kill the parent.
pub fn descendants(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for row in table().into_iter().filter(|row| !row.zombie) {
        children.entry(row.parent).or_default().push(row.pid);
    }
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        let of_parent = children.remove(&parent).unwrap_or_default();
        found.extend(&of_parent);
        open.extend(of_parent);
    }
    found
}

pub fn is_alive(pid: u32) -> bool {
    table().iter().any(|row| row.pid == pid && !row.zombie)
}

/// Waits until none of the processes lives; panics with the survivors after the deadline.
pub async fn wait_gone(pids: &[u32], deadline: Duration) {
    let end = tokio::time::Instant::now() + deadline;
    loop {
        let alive: Vec<Row> = table().into_iter().filter(|row| pids.contains(&row.pid) && !row.zombie).collect();
        if alive.is_empty() {
            return;
        }
        assert!(tokio::time::Instant::now() < end, "still alive after {deadline:?}: {alive:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Ends a process that a fixture left behind on purpose.
pub fn end(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
        // Gone already is as good.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
