//! To whom pages of a segment may be given (rule R4).

use crate::carriers::Carriers;
use crate::ids::NameId;
use crate::rights::{Principal, Readers};
use serde::{Deserialize, Serialize};

/// To whom pages of a segment may be given: what is left of its list for those who only pass pages on (rule R4).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Audience {
    /// The nodes that may read.
    pub readers: Readers,
    /// The sites that may carry.
    pub carriers: Carriers,
}

impl Audience {
    /// Every member, and every site.
    pub const EVERYBODY: Audience = Audience {
        readers: Readers::Members,
        carriers: Carriers::ALL_SITES,
    };

    /// Whether a node that is no site may have pages.
    pub fn may_read(&self, who: Principal) -> bool {
        self.readers.include(who)
    }

    /// Whether a site may have pages. One that the member of its name carries may also have what that one may read.
    pub fn may_carry(&self, site: NameId, is_carried: bool) -> bool {
        let member = Principal {
            name: site,
            is_operator: false,
        };
        let is_named = self.carriers.names.binary_search(&site).is_ok();
        let by_kind = match is_carried {
            true => self.readers.include(member),
            false => self.carriers.sites,
        };
        is_named || by_kind
    }

    /// How many nodes it names.
    pub fn named(&self) -> usize {
        let readers = match &self.readers {
            Readers::Members => 0,
            Readers::Names(names) => names.len(),
        };
        readers + self.carriers.names.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carriers::Carrier;
    use alloc::vec;
    use alloc::vec::Vec;

    fn id(name: &str) -> NameId {
        NameId::of(name)
    }

    fn audience(readers: Readers, words: &[&str]) -> Audience {
        let lines: Vec<Carrier> = words.iter().map(|word| word.parse().unwrap()).collect();
        Audience {
            readers,
            carriers: Carriers::of(&lines),
        }
    }

    #[test]
    fn everybody_is_every_member_and_every_dedicated_site() {
        let all = Audience::EVERYBODY;
        assert!(all.may_carry(id("office"), false) && all.may_carry(id("anna"), true));
        let closed = audience(Readers::Members, &["@nobody"]);
        assert!(!closed.may_carry(id("office"), false));
        assert!(closed.may_carry(id("anna"), true), "Anna may read it");
    }

    #[test]
    fn lines_name_the_only_sites_that_carry() {
        let named = audience(Readers::Members, &["office"]);
        assert!(named.may_carry(id("office"), false) && !named.may_carry(id("shed"), false));
        let more = audience(Readers::Members, &["anna", "@sites"]);
        assert!(more.may_carry(id("shed"), false));
    }

    #[test]
    fn a_carried_site_has_what_its_member_may_read_and_what_names_it() {
        let readers = Readers::Names(vec![id("anna")]);
        let open = audience(readers.clone(), &[]);
        assert!(open.may_carry(id("anna"), true));
        assert!(!open.may_carry(id("ben"), true), "@sites is not for it");
        let closed = audience(readers, &["@nobody", "ben"]);
        assert!(closed.may_carry(id("anna"), true) && closed.may_carry(id("ben"), true));
        assert!(!closed.may_carry(id("carl"), true));
        // A dedicated site has nothing of a member of its name.
        assert!(!closed.may_carry(id("anna"), false));
    }
}
