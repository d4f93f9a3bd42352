//! Malformed and smuggled messages: nobody may read one request as two.

use crate::origin::{Site, answer};

async fn site() -> Site {
    Site::open(|_| answer("Cache-Control: max-age=60", "abc")).await
}

#[tokio::test]
async fn a_message_that_two_could_read_in_two_ways_reaches_nobody() {
    let site = site().await;
    let large = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: y\r\n".repeat(1_000)
    );
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/9.1\r\nHost: a\r\n\r\n",
        "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
        &large,
        &many,
    ] {
        let shown: String = request.chars().take(80).collect();
        let request = request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let answer = site.exchange(&request).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(
            status.is_empty() || status.starts_with('4'),
            "{shown:?}: {answer}"
        );
        assert_eq!(site.asked(), 0, "{shown:?}");
    }
}

/// Chunks go before a length (RFC 9112, section 6.3), the length does not reach the origin, and the connection ends.
#[tokio::test]
async fn a_length_beside_chunks_hides_no_second_request() {
    let site = site().await;
    let smuggled = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /secret HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    site.exchange(smuggled).await;
    let head = site.last_head().to_ascii_lowercase();
    let has_both = head.contains("content-length") && head.contains("transfer-encoding");
    assert!(!has_both, "{head}");
}
