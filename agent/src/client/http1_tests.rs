//! Answers in every framing, cut anywhere, and nonsense.

use proptest::prelude::*;

use super::*;

/// Reads an answer that comes in these pieces: its status, content, whether it ended, and what becomes of the connection.
fn read(pieces: &[&[u8]]) -> Result<(u16, Vec<u8>, bool, After), BadAnswer> {
    let mut reader = HeadReader::default();
    let mut seen: Option<(Head, Vec<u8>, bool)> = None;
    for piece in pieces {
        let mut rest = *piece;
        if seen.is_none() {
            let Some((head, after)) = reader.push(rest)? else { continue };
            rest = after;
            seen = Some((head, Vec::new(), false));
        }
        let Some((head, content, ended)) = &mut seen else { continue };
        loop {
            match head.body.next(&mut rest)? {
                Piece::Data(data) => content.extend_from_slice(data),
                Piece::More => break,
                Piece::End => {
                    *ended = true;
                    break;
                }
            }
        }
    }
    let (head, content, ended) = seen.ok_or_else(|| bad("no head"))?;
    Ok((head.status.as_u16(), content, ended, head.after))
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

#[test]
fn bodies_end_as_their_heads_say() {
    let check = |answer: &str, status: u16, content: &str, ended: bool, after: After| {
        let got = read(&[answer.as_bytes()]).unwrap();
        assert_eq!(got, (status, content.as_bytes().to_vec(), ended, after), "{answer}");
    };
    check(
        &format!("{CHUNKED}5\r\nhello\r\nA;x=y\r\n, world...\r\n0\r\n\r\n"),
        200,
        "hello, world...",
        true,
        After::Keep,
    );
    check(&format!("{CHUNKED}5\nhello\n0\nx: y\n\n"), 200, "hello", true, After::Keep);
    check(&format!("{CHUNKED}5\r\nhel"), 200, "hel", false, After::Keep);
    check("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", 200, "abc", true, After::Keep);
    check("HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc", 200, "abc", true, After::Keep);
    check("HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 0\r\n\r\n", 200, "", true, After::Close);
    check("HTTP/1.1 200 OK\r\n\r\nabc", 200, "abc", false, After::Close);
    check("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", 200, "a", true, After::Close);
    check("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na", 200, "a", true, After::Keep);
    check("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true, After::Keep);
    let continued = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Too Many\r\ncontent-length: 2\r\n\r\nno";
    check(continued, 429, "no", true, After::Keep);
}

#[test]
fn nonsense_is_named() {
    let check = |answer: &str, words: &str| {
        assert_eq!(read(&[answer.as_bytes()]).unwrap_err().to_string(), words, "{answer}");
    };
    check("SSH-2.0-OpenSSH\r\n\r\n", "what came is no http answer: invalid HTTP version");
    let announced = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3_000);
    check(&announced, "over 65536 bytes announced an answer, and none came");
    check(&format!("{CHUNKED}x\r\n"), "a chunk's size can't be read");
    check(&format!("{CHUNKED}\r\n"), "a chunk without a size came");
    check(&format!("{CHUNKED}11111111111111111\r\n"), "a chunk's size can't be read");
    check(&format!("{CHUNKED}1\r\nab\r\n"), "a chunk is longer than it says");
    check(&format!("{CHUNKED}1;{}", "x".repeat(20_000)), "endless chunk extensions or trailers came");
    check(&format!("{CHUNKED}0\r\n{}", "x: y\r\n".repeat(9_000)), "endless chunk extensions or trailers came");
    let lengths = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n";
    check(lengths, "the answer gives two different lengths");
    check("HTTP/1.1 200 OK\r\ncontent-length: -3\r\n\r\n", "the answer's content-length \"-3\" is no number");
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(70_000));
    check(&endless, "the answer's head is longer than 65536 bytes");
}

proptest! {
    #[test]
    fn pieces_make_no_difference(cuts in proptest::collection::vec(0_usize..120, 0..6)) {
        let answer = format!("{CHUNKED}5;a\r\nhello\r\n1f\r\n{}\r\n0\r\nt: v\r\n\r\n", "data: x\n\n".repeat(3) + "1234");
        let bytes = answer.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        prop_assert_eq!(read(&pieces), read(&[bytes]));
    }

    #[test]
    fn no_bytes_break_it(bytes: Vec<u8>) {
        drop(read(&[CHUNKED.as_bytes(), &bytes]));
        drop(read(&[&bytes]));
    }
}
