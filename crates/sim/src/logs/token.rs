//! What programs append: each token is written once.

/// What one update appends: no other update appends the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Token {
    slot: u16,
    no: u8,
    life: u8,
    number: u16,
}

impl Token {
    pub(super) fn new(slot: u16, no: u8, life: u8, number: u16) -> Self {
        Token {
            slot,
            no,
            life,
            number,
        }
    }

    /// The node whose program wrote it.
    pub(super) fn node(self) -> usize {
        usize::from(self.no)
    }

    pub(super) fn slot(self) -> u16 {
        self.slot
    }

    pub(super) fn bytes(self) -> [u8; 4] {
        let [high, low] = self.number.to_be_bytes();
        [self.no, self.life, high, low]
    }

    /// All tokens of an object's value.
    pub(super) fn all(slot: u16, value: &[u8]) -> Vec<Token> {
        let token = |bytes: &[u8]| match *bytes {
            [no, life, high, low] => Token::new(slot, no, life, u16::from_be_bytes([high, low])),
            _ => Token::new(slot, u8::MAX, u8::MAX, u16::MAX),
        };
        value.chunks(4).map(token).collect()
    }
}
