//! Who keeps in memory what a server made for a request, such as a task: one process that is our child, and is gone with
//! it, or whoever is behind an address. Keeps nothing itself.

use crate::engine::entropy;
use crate::model::id::Entropy;

/// See the module. Each child that is started is another one, over all hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeper(Option<Entropy>);

impl Keeper {
    /// Whoever is behind the address of a server: how long that remembers is the server's matter.
    pub const ADDRESS: Keeper = Keeper(None);

    /// A child that has just been started.
    pub(super) fn new_child() -> Keeper {
        Keeper(Some(entropy()))
    }

    /// True when what is kept ends with a process of ours.
    pub fn is_child(self) -> bool {
        self.0.is_some()
    }

    /// The name of a child.
    pub fn name(self) -> Option<String> {
        self.0.map(hex::encode)
    }

    /// The child of this name; one that cannot be read names none that lives.
    pub fn named(name: &str) -> Keeper {
        let mut entropy = Entropy::default();
        let _ = hex::decode_to_slice(name, &mut entropy);
        Keeper(Some(entropy))
    }
}
