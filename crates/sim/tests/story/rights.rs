//! Rights lists as people write them: `admin m0, read m1, write @members, carry R`.

use thorp_model::{Carrier, NameId, Right, RightsList, Subject};

/// Whoever made the first objects.
const FOUNDER: NameId = NameId(u64::MAX);

/// Above the members are the names of sites.
const FIRST_SITE: u64 = 1_000;

/// The id of a node's name: it rises with its number, as the nodes' own ids do.
pub(crate) fn name_id(name: &str) -> NameId {
    // `m0+1` is another process of the name m0.
    let (name, _) = name.split_once('+').unwrap_or((name, ""));
    let (kind, number) = name.split_at(name.len().min(1));
    match (kind, number.parse::<u64>()) {
        // A site that a member carries has the name of that member.
        ("m" | "C", Ok(number)) => NameId(number + 1),
        ("R", number) => NameId(FIRST_SITE + number.unwrap_or(1)),
        _ => NameId(0),
    }
}

/// The name of an id.
pub(crate) fn name(id: NameId) -> String {
    match id {
        FOUNDER => String::from("founder"),
        NameId(0) => String::from("nobody"),
        NameId(FIRST_SITE..) => match id.0 - FIRST_SITE {
            1 => String::from("R"),
            number => format!("R{number}"),
        },
        NameId(number) => format!("m{}", number - 1),
    }
}

/// The bytes of a list; of what is none, the text.
pub(crate) fn bytes_of(text: &str) -> Vec<u8> {
    let mut list = RightsList::default();
    for entry in text.split(", ").filter(|entry| !entry.is_empty()) {
        let parts = entry.split_once(' ');
        if let Some(("carry", site)) = parts {
            list.grant_carry(match site {
                "@sites" => Carrier::Sites,
                "@nobody" => Carrier::Nobody,
                name => Carrier::Id(name_id(name)),
            });
            continue;
        }
        let right = parts.and_then(|(right, _)| right.parse::<Right>().ok());
        let (Some((_, subject)), Some(right)) = (parts, right) else {
            return text.as_bytes().to_vec();
        };
        let subject = match subject {
            "@members" => Subject::Members,
            name => Subject::Id(name_id(name)),
        };
        list.grant(subject, right);
    }
    list.to_bytes()
}

/// A list for people.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let Ok(list) = RightsList::parse(bytes) else {
        return super::names::value(bytes);
    };
    let entries = list.entries().map(|(subject, right)| match subject {
        Subject::Id(id) => format!("{right} {}", name(*id)),
        other => format!("{right} {other}"),
    });
    let carriers = list.carriers().map(|carrier| match carrier {
        Carrier::Id(id) => format!("carry {}", name(*id)),
        other => format!("carry {other}"),
    });
    entries.chain(carriers).collect::<Vec<_>>().join(", ")
}
