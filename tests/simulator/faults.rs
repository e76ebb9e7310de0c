//! What may go wrong in a run, by name.

/// A set of the faults that a world knows, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    known: &'static [&'static str],
    bits: u32,
}

impl Faults {
    /// Those of the known ones that are named.
    pub fn of<'n>(
        known: &'static [&'static str],
        names: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let places = names
            .into_iter()
            .filter_map(|name| known.iter().position(|it| *it == name));
        let bits = places.fold(0, |set, bit| set | 1 << bit);
        Self { known, bits }
    }

    pub fn has(self, name: &str) -> bool {
        let bit = self.known.iter().position(|known| *known == name);
        self.bits >> bit.expect("the fault is known") & 1 == 1
    }

    pub fn names(self) -> Vec<&'static str> {
        let known = self.known.iter().copied();
        known.filter(|name| self.has(name)).collect()
    }

    pub fn without(self, name: &str) -> Self {
        let names = self.names().into_iter();
        Self::of(self.known, names.filter(|known| *known != name))
    }
}
