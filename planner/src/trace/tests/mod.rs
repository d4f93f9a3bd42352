//! Every format as it should be, and as it should not.

mod bounds;
mod compression;
mod dealing;
mod formats;
mod several;

use super::*;
use std::io::Write;

fn read(name: &str, bytes: &[u8]) -> Result<Trace, String> {
    Reading::default()
        .bytes(name, bytes)
        .map_err(|error| error.to_string())
}

fn refused(name: &str, bytes: &[u8]) -> String {
    read(name, bytes).expect_err("it cannot be read")
}

fn oracle(requests: &[(u32, u64, u32, i64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, id, size, next) in requests {
        bytes.extend(time.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
    }
    bytes
}

const THREE: [(u32, u64, u32, i64); 3] = [(5, 900, 512, 2), (5, 7, 1024, -1), (6, 900, 512, -1)];

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut made = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    made.write_all(bytes).expect("memory takes it");
    made.finish().expect("memory takes it")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

/// `1\n2\n1\n` by xz 5.4, whose encoder is not built in here.
const XZ: &[u8] = b"\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\
      \x1c\x00\x00\x00\x10\xcf\x58\xcc\x01\x00\x05\x31\x0a\x32\x0a\x31\
      \x0a\x00\x00\x00\xf9\x23\x10\xc7\x7f\x4b\x85\xe7\x00\x01\x1e\x06\
      \xc1\x2f\xa4\x1d\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a";
