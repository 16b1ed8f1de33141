//! What a running tool tells its callers beside its end: each message, in order. Costs nothing until the first one; wakes
//! nobody by itself.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::notices::Notice;

/// Messages kept for a caller that does not listen; the oldest go first.
const KEPT_MAX: usize = 256;

/// The messages of one execution.
#[derive(Debug, Default)]
pub struct Messages(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// How many have gone.
    gone: u64,
    left: VecDeque<Arc<Notice>>,
}

/// Where one caller stands; it sees what is told from then on.
#[derive(Debug)]
pub struct Reader {
    messages: Arc<Messages>,
    seen: u64,
}

impl Messages {
    /// Adds one.
    pub fn push(&self, notice: Notice) {
        let mut kept = self.kept();
        if kept.left.len() == KEPT_MAX {
            kept.left.pop_front();
            kept.gone += 1;
        }
        kept.left.push_back(Arc::new(notice));
    }

    /// Begins to read behind what was told so far.
    pub fn reader(self: &Arc<Self>) -> Reader {
        let kept = self.kept();
        Reader { messages: self.clone(), seen: kept.gone + kept.left.len() as u64 }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    /// The next message that is still there.
    pub fn next(&mut self) -> Option<Arc<Notice>> {
        let kept = self.messages.kept();
        let at = self.seen.max(kept.gone);
        let notice = kept.left.get((at - kept.gone) as usize)?.clone();
        self.seen = at + 1;
        Some(notice)
    }
}

#[cfg(test)]
mod tests {
    use super::super::notices::Addressee;
    use super::*;

    fn notice(method: &str) -> Notice {
        Notice { upstream: "u".into(), to: Addressee::Everybody, method: method.to_owned(), params: None }
    }

    fn all(reader: &mut Reader) -> Vec<String> {
        std::iter::from_fn(|| reader.next()).map(|notice| notice.method.clone()).collect()
    }

    #[test]
    fn each_reader_gets_each_message_told_since_it_came_once_and_in_order() {
        let messages = Arc::new(Messages::default());
        let mut early = messages.reader();
        messages.push(notice("1"));
        let mut late = messages.reader();
        messages.push(notice("2"));
        assert_eq!((all(&mut early), all(&mut late)), (vec!["1".into(), "2".into()], vec!["2".to_owned()]));
        assert!(all(&mut early).is_empty());
    }

    #[test]
    fn a_reader_that_is_too_slow_misses_the_oldest_only() {
        let messages = Arc::new(Messages::default());
        let mut reader = messages.reader();
        for n in 0..KEPT_MAX + 2 {
            messages.push(notice(&n.to_string()));
        }
        let told = all(&mut reader);
        assert_eq!((told.len(), &*told[0], &*told[KEPT_MAX - 1]), (KEPT_MAX, "2", "257"));
    }
}
