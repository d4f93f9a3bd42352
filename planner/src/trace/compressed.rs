//! Files as they are without compression.

use super::Wrong;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// What is in a file, its beginning, and its name without the ending that says how it is compressed.
pub(super) type Opened<'a, 'n> = (Box<dyn BufRead + 'a>, Vec<u8>, &'n str);

/// Looks into a file and undoes its compression, which its first bytes tell.
pub(super) fn opened<'a, 'n>(name: &'n str, file: impl Read + 'a) -> Result<Opened<'a, 'n>, Wrong> {
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    let magic = file.fill_buf()?;
    if magic.is_empty() {
        return Err(Wrong::whole("is empty"));
    }
    let compression = Compression::of(magic)?;
    let (bare, named) = without_ending(name);
    if let Some(named) = named
        && compression != Some(named)
    {
        return Err(Wrong::whole(format!(
            "is not compressed by {named}, as its name says: it was cut, damaged, or named wrongly"
        )));
    }
    let plain: Box<dyn Read + 'a> = match compression {
        None => Box::new(file),
        Some(Compression::Gzip) => Box::new(MultiGzDecoder::new(file)),
        Some(Compression::Xz) => Box::new(XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB_MOST)),
        Some(Compression::Zstd) => Box::new(Zstd::new(file)),
    };
    let mut plain = BufReader::with_capacity(BUFFER_BYTES, plain);
    let mut head = Vec::new();
    (&mut plain).take(HEAD_BYTES).read_to_end(&mut head)?;
    if head.is_empty() {
        return Err(Wrong::whole("is empty inside of its compression"));
    }
    let whole = Cursor::new(head.clone()).chain(plain);
    Ok((Box::new(whole), head, bare))
}

/// The name without the ending that says how it is compressed, and what that ending says.
fn without_ending(name: &str) -> (&str, Option<Compression>) {
    let endings = [
        (".gz", Compression::Gzip),
        (".xz", Compression::Xz),
        (".zst", Compression::Zstd),
        (".zstd", Compression::Zstd),
    ];
    endings
        .into_iter()
        .find_map(|(ending, it)| Some((name.strip_suffix(ending)?, Some(it))))
        .unwrap_or((name, None))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compression {
    Gzip,
    Xz,
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
        })
    }
}

impl Compression {
    fn of(magic: &[u8]) -> Result<Option<Self>, Wrong> {
        let known: [(&[u8], Self); 3] = [
            (&[0x1f, 0x8b], Compression::Gzip),
            (b"\xfd7zXZ\0", Compression::Xz),
            (&ZSTD, Compression::Zstd),
        ];
        let unknown: [(&[u8], &str); 4] = [
            (b"BZh", "bzip2"),
            (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
            (b"PK\x03\x04", "zip"),
            (b"7z\xbc\xaf", "7-Zip"),
        ];
        if let Some((_, name)) = unknown.iter().find(|(first, _)| magic.starts_with(first)) {
            return Err(Wrong::whole(format!(
                "is compressed by {name}; only gzip, xz and zstd can be read"
            )));
        }
        Ok(known
            .into_iter()
            .find(|(first, _)| magic.starts_with(first))
            .map(|(_, it)| it))
    }
}

/// Frames of zstd, one after the other: the decoder stops at the end of the first, and would hide that there are more.
struct Zstd<R> {
    source: R,
    frame: FrameDecoder,
    is_inside: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Self {
        Zstd {
            source,
            frame: FrameDecoder::new(),
            is_inside: false,
        }
    }

    /// Goes on to the next frame; false at the end.
    fn is_more(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.frame.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(
                        &mut (&mut self.source).take(u64::from(length)),
                        &mut io::sink(),
                    )?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn decode(&mut self) -> io::Result<()> {
        while self.frame.can_collect() == 0 && !self.frame.is_finished() {
            let block = BlockDecodingStrategy::UptoBlocks(1);
            self.frame
                .decode_blocks(&mut self.source, block)
                .map_err(io::Error::other)?;
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_inside && !self.is_more()? {
                return Ok(0);
            }
            self.is_inside = true;
            self.decode()?;
            let read = self.frame.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            checked(&self.frame)?;
            self.is_inside = false;
        }
    }
}

fn checked(decoder: &FrameDecoder) -> io::Result<()> {
    match (
        decoder.get_checksum_from_data(),
        decoder.get_calculated_checksum(),
    ) {
        (Some(told), Some(found)) if told != found => {
            Err(io::Error::other("the checksum of its zstd frame is wrong"))
        }
        _ => Ok(()),
    }
}

/// The first bytes of a zstd frame.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BUFFER_BYTES: usize = 1 << 16;
/// What a format is guessed from.
const HEAD_BYTES: u64 = 1 << 16;
/// `xz -9` needs 64 MiB; a file that asks for more than this is none that anybody made in good faith.
const XZ_MEMORY_KIB_MOST: u32 = 1 << 20;
