//! What differs between two answers of an origin without a change of its data: an audit overlooks it.

use std::fmt;

/// So many bytes of noise are overlooked at each place. More is a difference.
const NOISE_BYTES_MAX: usize = 4_096;

/// Noise between two texts, written as `name="token" value="*"`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Noise {
    before: String,
    after: String,
}

/// A text that does not say what noise is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoiseError(String);

impl fmt::Display for NoiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} does not say what noise is: write one * for it, with the text before it and the text after it",
            self.0
        )
    }
}

impl std::error::Error for NoiseError {}

impl Noise {
    /// Reads what noise is.
    ///
    /// # Errors
    ///
    /// There is not one `*` with text on both sides.
    pub fn parse(text: &str) -> Result<Self, NoiseError> {
        let error = || NoiseError(text.to_owned());
        let (before, after) = text.split_once('*').ok_or_else(error)?;
        let is_good = !before.is_empty() && !after.is_empty() && !after.contains('*');
        is_good
            .then(|| Noise {
                before: before.to_owned(),
                after: after.to_owned(),
            })
            .ok_or_else(error)
    }

    /// A body without this noise.
    fn without(&self, body: &[u8]) -> Vec<u8> {
        let (before, after) = (self.before.as_bytes(), self.after.as_bytes());
        let (mut left, mut rest) = (Vec::with_capacity(body.len()), body);
        while let Some(at) = find(rest, before) {
            let (kept, behind) = rest.split_at(at + before.len());
            left.extend_from_slice(kept);
            let window = &behind[..behind.len().min(NOISE_BYTES_MAX + after.len())];
            rest = &behind[find(window, after).unwrap_or(0)..];
        }
        left.extend_from_slice(rest);
        left
    }
}

/// Whether two bodies are the same, apart from noise.
pub(crate) fn are_alike(noise: &[Noise], one: &[u8], other: &[u8]) -> bool {
    one == other || quiet(noise, one) == quiet(noise, other)
}

/// A body without any noise.
pub(crate) fn quiet(noise: &[Noise], body: &[u8]) -> Vec<u8> {
    let quieter = |body: Vec<u8>, noise: &Noise| noise.without(&body);
    noise.iter().fold(body.to_vec(), quieter)
}

fn find(body: &[u8], text: &[u8]) -> Option<usize> {
    body.windows(text.len()).position(|part| part == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alike(noise: &[&str], one: &str, other: &str) -> bool {
        let noise = noise.iter().map(|text| Noise::parse(text));
        let noise: Vec<Noise> = noise.collect::<Result<_, _>>().expect("noise");
        are_alike(&noise, one.as_bytes(), other.as_bytes())
    }

    #[test]
    fn noise_is_overlooked_and_nothing_else() {
        let (id, time) = ("\"id\":\"*\"", "<!-- *ms -->");
        assert!(alike(&[], "a", "a") && !alike(&[], "a", "b"));
        let page = |id: &str, time: &str, text: &str| {
            format!("{{\"id\":\"{id}\",\"x\":1}}<p>{text}</p><!-- {time}ms --><!-- {time}ms -->")
        };
        let (one, other) = (page("7f", "12", "a"), page("", "900", "a"));
        assert!(alike(&[id, time], &one, &other));
        assert!(!alike(&[id], &one, &other));
        assert!(!alike(&[id, time], &one, &page("7f", "12", "b")));
        // Without its end it is no noise.
        assert!(!alike(&[id], "\"id\":\"1", "\"id\":\"2"));
        assert!(alike(&[id], "\"id\":\"1", "\"id\":\"1"));
    }

    #[test]
    fn much_noise_is_a_difference() {
        let page = |bytes: usize| format!("a[{}]", "x".repeat(bytes));
        assert!(alike(&["[*]"], &page(NOISE_BYTES_MAX), &page(0)));
        assert!(!alike(&["[*]"], &page(NOISE_BYTES_MAX + 1), &page(0)));
    }

    #[test]
    fn noise_is_between_two_texts() {
        for text in ["", "a", "*", "a*", "*b", "a*b*c"] {
            assert!(Noise::parse(text).is_err(), "{text}");
        }
    }
}
