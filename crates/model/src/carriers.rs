//! Which sites may carry a segment (rule R4, record 0021).
//!
//! The lines `carry SITE` of a segment's rights list say it.
//!
//! ```text
//! carry office
//! carry #1c04c1f5ac30fe90
//! ```

use crate::ids::NameId;
use crate::name_word::NameWord;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// The word that begins a line about a carrier.
pub(crate) const CARRY: &str = "carry";

/// Whom a `carry` line of a rights list is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Carrier {
    /// The site with this name, also one that a member of this name carries.
    Name(String),
    /// The site whose name has this id.
    Id(NameId),
    /// Every site that no member carries.
    Sites,
    /// No site: it stands where nobody else does, because a list without such lines lets every site carry.
    Nobody,
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Carrier::Name(name) => f.write_str(name),
            Carrier::Id(id) => write!(f, "#{id}"),
            Carrier::Sites => f.write_str("@sites"),
            Carrier::Nobody => f.write_str("@nobody"),
        }
    }
}

/// A word that names no carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoCarrier;

impl fmt::Display for NoCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a carrier is a site's name (lower-case letters, digits, hyphens and full stops), \
             #ID with 16 hexadecimal digits, @sites, or @nobody",
        )
    }
}

impl core::error::Error for NoCarrier {}

impl FromStr for Carrier {
    type Err = NoCarrier;

    fn from_str(word: &str) -> Result<Self, NoCarrier> {
        match word {
            "@sites" => Ok(Carrier::Sites),
            "@nobody" => Ok(Carrier::Nobody),
            word => match NameWord::parse(word) {
                Some(NameWord::Id(id)) => Ok(Carrier::Id(id)),
                Some(NameWord::Name(name)) => Ok(Carrier::Name(String::from(name))),
                None => Err(NoCarrier),
            },
        }
    }
}

/// The sites that may carry a segment, whatever their members may read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Carriers {
    /// Whether every site that no member carries may.
    pub sites: bool,
    /// The names of further sites, ascending.
    pub names: Vec<NameId>,
}

impl Carriers {
    /// Every site that no member carries.
    pub const ALL_SITES: Carriers = Carriers {
        sites: true,
        names: Vec::new(),
    };

    /// No site.
    pub const NOBODY: Carriers = Carriers {
        sites: false,
        names: Vec::new(),
    };

    /// What these lines give. Without any, every site that no member carries may.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a Carrier>) -> Self {
        let (mut carriers, mut is_empty) = (Carriers::NOBODY, true);
        for line in lines {
            is_empty = false;
            match line {
                Carrier::Name(name) => carriers.names.push(NameId::of(name)),
                Carrier::Id(id) => carriers.names.push(*id),
                Carrier::Sites => carriers.sites = true,
                Carrier::Nobody => {}
            }
        }
        if is_empty {
            return Carriers::ALL_SITES;
        }
        carriers.names.sort_unstable();
        carriers.names.dedup();
        carriers
    }

    /// The lines that give this. None if there need be none.
    pub fn lines(&self) -> impl Iterator<Item = Carrier> + '_ {
        let is_closed = !self.sites && self.names.is_empty();
        let sites = (self.sites && !self.names.is_empty()).then_some(Carrier::Sites);
        let names = self.names.iter().map(|name| Carrier::Id(*name));
        let nobody = is_closed.then_some(Carrier::Nobody);
        names.chain(sites).chain(nobody)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn carriers(words: &[&str]) -> Carriers {
        let lines: Vec<Carrier> = words.iter().map(|word| word.parse().unwrap()).collect();
        Carriers::of(&lines)
    }

    #[test]
    fn a_carrier_is_read_as_it_is_written() {
        let id = alloc::format!("#{}", NameId::of("office"));
        for word in ["office", "a.b-1", &id, "@sites", "@nobody"] {
            let read = word.parse::<Carrier>();
            assert_eq!(read.map(|carrier| carrier.to_string()), Ok(word.into()));
        }
        for word in ["", "Office", "#12", "@staff", "@members", "@"] {
            assert_eq!(word.parse::<Carrier>(), Err(NoCarrier), "{word}");
        }
    }

    #[test]
    fn without_lines_every_dedicated_site_carries() {
        assert_eq!(carriers(&[]), Carriers::ALL_SITES);
        assert_eq!(carriers(&["@nobody"]), Carriers::NOBODY);
    }

    #[test]
    fn carriers_are_written_as_lines_that_give_the_same() {
        for words in [
            &[][..],
            &["@nobody"],
            &["office"],
            &["office", "@sites"],
            &["@sites"],
        ] {
            let all = carriers(words);
            let lines: Vec<Carrier> = all.lines().collect();
            assert_eq!(Carriers::of(&lines), all);
        }
    }
}
