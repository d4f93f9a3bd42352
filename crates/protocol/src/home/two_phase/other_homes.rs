//! The other homes that this home is configured for (rule R7).

use alloc::collections::BTreeMap;
use alloc::string::String;
use thorp_model::HomeId;

/// What this home knows of a home that a transaction names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::home) enum Known {
    /// It is configured, and has named its id in this life.
    Heard,
    /// A home that is configured has not named its id yet: it may be this one.
    Unheard,
    /// No home that is configured has this id.
    Unknown,
}

/// The names of the other homes that this home is configured for, and the ids that they have named
/// in this life.
///
/// A name is in `heard` only if it is configured, and each name has one id: the last that it named.
/// So a node that names many homes adds none to the list.
#[derive(Debug, Default)]
pub(in crate::home) struct OtherHomes {
    heard: BTreeMap<String, Option<HomeId>>,
}

impl OtherHomes {
    /// Homes of these names; none has been heard.
    pub(in crate::home) fn new(configured: &[String]) -> Self {
        let heard = configured.iter().map(|name| (name.clone(), None));
        OtherHomes {
            heard: heard.collect(),
        }
    }

    /// The stream of a home begins. A home that is not configured changes nothing.
    pub(in crate::home) fn heard(&mut self, name: &str, home: HomeId) {
        if let Some(heard) = self.heard.get_mut(name) {
            *heard = Some(home);
        }
    }

    /// The name of a home, if it is configured and has been heard.
    pub(in crate::home) fn name(&self, home: HomeId) -> Option<String> {
        let mut heard = self.heard.iter();
        let (name, _) = heard.find(|(_, heard)| **heard == Some(home))?;
        Some(name.clone())
    }

    /// Whether a home of this name is configured.
    pub(in crate::home) fn has(&self, name: &str) -> bool {
        self.heard.contains_key(name)
    }

    /// The configured homes that have been heard in this life.
    pub(in crate::home) fn all_heard(&self) -> impl Iterator<Item = HomeId> {
        self.heard.values().copied().flatten()
    }

    /// The names of configured homes that have not been heard in this life.
    pub(in crate::home) fn unheard(&self) -> impl Iterator<Item = &str> {
        let unheard = self.heard.iter().filter(|(_, heard)| heard.is_none());
        unheard.map(|(name, _)| name.as_str())
    }

    /// Whether a configured home has not been heard in this life.
    pub(in crate::home) fn is_missing(&self) -> bool {
        self.heard.values().any(Option::is_none)
    }

    /// What is known of a home.
    pub(in crate::home) fn known(&self, home: HomeId) -> Known {
        if self.heard.values().any(|heard| *heard == Some(home)) {
            return Known::Heard;
        }
        match self.is_missing() {
            true => Known::Unheard,
            false => Known::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DALE: HomeId = HomeId(2);

    #[test]
    fn a_home_is_unknown_only_when_all_that_are_configured_were_heard() {
        let mut others = OtherHomes::new(&[String::from("dale"), String::from("isle")]);
        others.heard("dale", DALE);
        assert_eq!(others.known(DALE), Known::Heard);
        assert_eq!(others.known(HomeId(9)), Known::Unheard);
        others.heard("isle", HomeId(3));
        assert_eq!(others.known(HomeId(9)), Known::Unknown);
        assert!(!others.is_missing());
    }

    #[test]
    fn a_name_stands_for_one_home_and_others_for_none() {
        let mut others = OtherHomes::new(&[String::from("dale")]);
        for home in 100..200 {
            others.heard("dale", HomeId(home));
            others.heard("stranger", HomeId(1_000 + home));
        }
        assert_eq!(others.known(HomeId(199)), Known::Heard);
        assert_eq!(others.known(HomeId(198)), Known::Unknown);
        assert_eq!(others.known(HomeId(1_199)), Known::Unknown);
    }

    #[test]
    fn a_home_that_knows_no_other_shares_nothing() {
        let others = OtherHomes::new(&[]);
        assert_eq!(others.known(DALE), Known::Unknown);
    }
}
