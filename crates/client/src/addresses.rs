//! Lists of addresses that a program gives.

use thorp_net::ADDRESSES_MAX;

/// Fails, with words for a person, if one site or home has too many addresses.
pub(crate) fn check_addresses(addresses: &[String]) -> Result<(), String> {
    match (addresses.first(), addresses.len()) {
        (Some(first), count) if count > ADDRESSES_MAX => Err(format!(
            "{count} addresses of one site or home ({first} and others) are too many: {ADDRESSES_MAX} are the most"
        )),
        _ => Ok(()),
    }
}
