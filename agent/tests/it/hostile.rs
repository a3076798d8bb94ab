//! Servers that mean harm: whatever they send, the client ends in bounded memory, with one clear failure.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    process::Command,
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use speedmatrix_agent::{
    client::{Ask, Body, Connection, KeepText, Outcome, SlotCounters, Target, http::Http, probe::probe},
    clock::Clock,
    secret::Secret,
};
use speedmatrix_shared::{
    plan::draft::parse_target,
    trace::{FailureKind, RequestEnd},
    units::Nanos,
};
use tokio_util::sync::CancellationToken;

/// What a server could send at most if nobody stopped it: no more than this passes, bytes. The largest bound of the client
/// is 16 MiB, and sockets hold some more.
const MOST_SENT: usize = 48 << 20;
/// Says to a test that its process is its own.
const ALONE: &str = "SPEEDMATRIX_TEST_ALONE";
/// What comes at once of something endless, bytes.
const BLOCK: usize = 64 << 10;

/// After what was said, the server …
#[derive(Clone, Copy)]
enum Then {
    /// repeats this until its client has gone.
    Repeats(&'static str),
    /// says no more, and waits for its client to go.
    HalfCloses,
    /// breaks the connection, before it has read the request.
    Resets,
}

/// A server that answers every request alike; it gives the most that a client took, bytes.
fn server(said: &str, then: Then, requests: usize) -> (String, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let said = said.to_owned();
    let serving = std::thread::spawn(move || {
        let answers = (0..requests).map(|_| answer(&mut listener.accept().unwrap().0, &said, then));
        answers.max().unwrap_or_default()
    });
    (url, serving)
}

fn answer(io: &mut TcpStream, said: &str, then: Then) -> usize {
    let mut request = [0; 4_096];
    if let Then::Resets = then {
        // What is unread when a socket closes makes the system send a reset.
        io.read_exact(&mut request[..1]).ok();
        return 0;
    }
    if !io.read(&mut request).is_ok_and(|read| read > 0) || io.write_all(said.as_bytes()).is_err() {
        return 0;
    }
    match then {
        Then::Repeats(text) => {
            let block = text.repeat(BLOCK.div_ceil(text.len()));
            let mut sent = said.len();
            while sent < 2 * MOST_SENT && io.write_all(block.as_bytes()).is_ok() {
                sent += block.len();
            }
            sent
        }
        Then::HalfCloses | Then::Resets => {
            io.shutdown(Shutdown::Write).ok();
            while io.read(&mut request).is_ok_and(|read| read > 0) {}
            said.len()
        }
    }
}

fn ask() -> Ask {
    Ask {
        slot: 0,
        scheduled: Nanos(0),
        path: "/v1/chat/completions",
        body: Body::new([Bytes::from_static(b"{\"model\":\"m\",\"messages\":[],\"stream\":true}")], 16),
        keep_text: KeepText::Yes,
        idle_limit: Nanos::from_secs(30),
    }
}

async fn asked(connection: &mut Connection) -> Outcome {
    connection.stream(ask(), &SlotCounters::default(), &CancellationToken::new()).await
}

fn connection(url: &str) -> Connection {
    Connection::new(&Target { url: parse_target(url).unwrap(), key: None }, Clock::start()).unwrap()
}

/// What comes of a request to such a server, as a line.
async fn outcome(name: &str, said: &str, then: Then) -> String {
    let (url, serving) = server(said, then, 1);
    let mut connection = connection(&url);
    let outcome = asked(&mut connection).await;
    // An unread answer must not keep the server writing.
    drop(connection);
    let sent = tokio::task::spawn_blocking(|| serving.join().unwrap()).await.unwrap();
    assert!(sent < MOST_SENT, "{name}: {sent} bytes were taken");
    let kept = outcome.text.map_or(0, |text| text.content.len() + text.reasoning.len());
    match outcome.trace.end {
        RequestEnd::Failed(failure) => {
            format!("{name}: {}: {} (text of {kept} bytes)", failure.kind.label(), failure.text)
        }
        end => format!("{name}: {end:?} (text of {kept} bytes)"),
    }
}

/// Head of a stream.
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
/// An event with text.
const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"aye\"}}]}\n\n";
/// Head of a document.
const JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hostile_server_sends_ends_in_bounds_and_in_words() {
    let begun = format!("{STREAM}{TOKEN}data: {{\"choices\":[{{\"delta\":{{\"content\":\"");
    let ended = counted("{\"completion_tokens\":1}").replace("data: [DONE]\n\n", "");
    let deep = format!("{STREAM}data: {}\n\n{TOKEN}", "[".repeat(100_000));
    let zipped = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\r\n";
    let cases = [
        ("an event without an end", begun.as_str(), Then::Repeats("AAAAAAAAAAAAAAAA")),
        ("tokens without an end", STREAM, Then::Repeats(TOKEN)),
        ("tokens after an end", &ended, Then::Repeats(TOKEN)),
        ("lines that are no field", STREAM, Then::Repeats("<p>no event at all\n")),
        ("a document without an end", JSON, Then::Repeats("[[[[[[[[")),
        ("an error without an end", "HTTP/1.1 500 Oh\r\n\r\n", Then::Repeats("no ")),
        ("a header without an end", "HTTP/1.1 200 OK\r\nx: ", Then::Repeats("y")),
        ("headers without an end", "HTTP/1.1 200 OK\r\n", Then::Repeats("x: y\r\n")),
        ("answers before the answer", "", Then::Repeats("HTTP/1.1 103 Early Hints\r\n\r\n")),
        (
            "a chunk's length without an end",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            Then::Repeats("0"),
        ),
        (
            "a chunk's extras without an end",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=",
            Then::Repeats("b"),
        ),
        ("a compressed bomb", zipped, Then::Repeats("\0")),
        ("deep JSON", &deep, Then::HalfCloses),
        ("a length below zero", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", Then::HalfCloses),
        (
            "a length that never comes",
            "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n",
            Then::HalfCloses,
        ),
        ("half closed after the head", STREAM, Then::HalfCloses),
        ("half closed in an event", &begun, Then::HalfCloses),
        ("half closed before the head", "HTTP/1.1 200", Then::HalfCloses),
    ];
    let mut lines = Vec::new();
    for (name, said, then) in cases {
        lines.push(outcome(name, said, then).await);
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    an event without an end: broken protocol: over 16777216 bytes came without an event's end: the stream was given up (text of 3 bytes)
    tokens without an end: broken protocol: 4161 events with text came for a request of at most 16 output tokens, and it was given up: check that the server, or what stands before it, keeps to max_tokens (text of 12483 bytes)
    tokens after an end: broken protocol: 4161 events with text came for a request of at most 16 output tokens, and it was given up: check that the server, or what stands before it, keeps to max_tokens (text of 12483 bytes)
    lines that are no field: broken protocol: over 16777216 bytes came without an event's end: the stream was given up (text of 0 bytes)
    a document without an end: broken protocol: a document of over 16777216 bytes came: it was given up (text of 0 bytes)
    an error without an end: server error: no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no no  (text of 0 bytes)
    a header without an end: broken protocol: the answer's head is longer than 65536 bytes (text of 0 bytes)
    headers without an end: broken protocol: what came is no http answer: too many headers (text of 0 bytes)
    answers before the answer: broken protocol: over 65536 bytes announced an answer, and none came (text of 0 bytes)
    a chunk's length without an end: broken protocol: a chunk's size can't be read (text of 0 bytes)
    a chunk's extras without an end: broken protocol: endless chunk extensions or trailers came (text of 0 bytes)
    a compressed bomb: unreadable encoding: the answer is encoded as gzip although only identity was accepted (text of 0 bytes)
    deep JSON: stream cut short: the stream ended after 1 events with text, without a finish reason or [DONE] (text of 3 bytes)
    a length below zero: broken protocol: the answer's content-length "-1" is no number (text of 0 bytes)
    a length that never comes: stream cut short: the connection was closed in the middle of the answer (text of 0 bytes)
    half closed after the head: stream cut short: the stream ended after 0 events with text, without a finish reason or [DONE] (text of 0 bytes)
    half closed in an event: stream cut short: the stream ended after 1 events with text, without a finish reason or [DONE] (text of 3 bytes)
    half closed before the head: connection reset: the connection was closed within the answer's head (text of 0 bytes)
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_or_a_name_without_measure_is_cut() {
    let (long, name) = ("é".repeat(2 << 20), "n".repeat(1 << 20));
    let chunk = format!(
        "{{\"model\":\"{name}\",\"choices\":[{{\"delta\":{{\"content\":\"{long}\"}},\"finish_reason\":\"{name}\"}}]}}"
    );
    let streamed =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {chunk}\n\ndata: [DONE]\n\n");
    let whole = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{chunk}");
    for said in [streamed, whole] {
        let (url, serving) = server(&said, Then::HalfCloses, 1);
        let outcome = asked(&mut connection(&url)).await;
        tokio::task::spawn_blocking(|| serving.join().unwrap()).await.unwrap();
        assert_eq!(outcome.text.unwrap().content.len(), 1 << 20);
        assert_eq!(outcome.model.as_deref(), Some("over 4096 bytes"));
        assert_eq!(outcome.trace.end, RequestEnd::Completed { finish_reason: Some("over 4096 bytes".into()) });
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_within_the_bounds_takes_little_more_memory_than_its_bytes() {
    const BYTES: usize = 6 << 20;
    // In a process of its own, as memory is that of all tests which share one.
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "hostile::what_is_within_the_bounds_takes_little_more_memory_than_its_bytes"]);
        let output = alone.env(ALONE, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "the test was not found");
        return;
    }
    // What this process has taken at most, KiB: with the answer in it, and the copies that the server makes.
    let peak_kib = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    };
    let full = |open: &str, element: &str, close: &str| {
        let elements = format!("{element},").repeat(BYTES / (element.len() + 1));
        [open, &elements, element, close].concat()
    };
    let choices = full("{\"choices\":[", "{}", "]}");
    let tools = full("{\"choices\":[{\"delta\":{\"tool_calls\":[", "{}", "]}}]}");
    let error = full("{\"error\":[", "{\"a\":0}", "]}");
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type:";
    for document in [choices, tools, error] {
        let streamed = format!("{head} text/event-stream\r\n\r\ndata: {document}\n\n");
        let failing = format!("{head} text/event-stream\r\n\r\nevent: error\ndata: {document}\n\n");
        let whole = format!("{head} application/json\r\n\r\n{document}");
        for said in [streamed, failing, whole] {
            let (url, serving) = server(&said, Then::HalfCloses, 1);
            asked(&mut connection(&url)).await;
            tokio::task::spawn_blocking(|| serving.join().unwrap()).await.unwrap();
        }
    }
    assert!(peak_kib() < 20 * (BYTES >> 10), "{} KiB were taken", peak_kib());
}

/// An answer whole in one chunk, whose usage says this.
fn counted(usage: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {{\"choices\":[{{\"delta\":{{\"content\":\"aye\"}}}}]}}\n\n\
         data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_can_not_be_count_nothing() {
    let cases = [
        ("as it should be", "{\"completion_tokens\":7}"),
        ("below zero", "{\"completion_tokens\":-7}"),
        ("huge", "{\"completion_tokens\":18446744073709551615}"),
        ("larger than any whole number", "{\"completion_tokens\":1e400}"),
        ("a fraction", "{\"completion_tokens\":0.5}"),
        ("no number", "{\"completion_tokens\":NaN}"),
        ("a text", "{\"completion_tokens\":\"7\"}"),
        ("of another kind", "[[[]]]"),
    ];
    let mut lines = Vec::new();
    for (name, usage) in cases {
        let (url, serving) = server(&counted(usage), Then::HalfCloses, 1);
        let outcome = asked(&mut connection(&url)).await;
        tokio::task::spawn_blocking(|| serving.join().unwrap()).await.unwrap();
        let (tokens, _) = outcome.trace.output_tokens();
        lines.push(format!("{name}: {tokens} tokens, {:?}, {:?}", outcome.trace.notes, outcome.trace.end));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    as it should be: 7 tokens, [MultiTokenChunks], Completed { finish_reason: Some("stop") }
    below zero: 1 tokens, [UsageMissing], Completed { finish_reason: Some("stop") }
    huge: 1 tokens, [UsageImplausible], Completed { finish_reason: Some("stop") }
    larger than any whole number: 1 tokens, [UsageMissing, MalformedEventSkipped], Completed { finish_reason: None }
    a fraction: 1 tokens, [UsageMissing], Completed { finish_reason: Some("stop") }
    no number: 1 tokens, [UsageMissing, MalformedEventSkipped], Completed { finish_reason: None }
    a text: 1 tokens, [UsageMissing], Completed { finish_reason: Some("stop") }
    of another kind: 1 tokens, [UsageMissing], Completed { finish_reason: Some("stop") }
    "#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_is_no_utf8_is_kept_as_well_as_it_can_be() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut io, _) = listener.accept().unwrap();
        assert!(io.read(&mut [0; 4_096]).unwrap() > 0);
        let said = [
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".as_slice(),
            b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\xc3(\\ud800b\"}}]}\n\n\xff\xfe: \x80\n\n",
            b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ];
        io.write_all(&said.concat()).unwrap();
    });
    let outcome = asked(&mut connection(&url)).await;
    serving.join().unwrap();
    let completed = RequestEnd::Completed { finish_reason: Some("stop".into()) };
    assert_eq!((outcome.trace.end, outcome.text.unwrap().content.as_str()), (completed, "a\u{fffd}\u{fffd}(\u{fffd}b"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_resets_is_that_many_failures() {
    const STORM: usize = 50;
    // A connection that broke before a word came back is tried once more.
    let (url, serving) = server("", Then::Resets, 2 * STORM);
    let mut connection = connection(&url);
    for _ in 0..STORM {
        let RequestEnd::Failed(failure) = asked(&mut connection).await.trace.end else { panic!("nobody answered") };
        assert_eq!(failure.kind, FailureKind::ConnectionReset, "{}", failure.text);
    }
    // Whoever is left to be served.
    while !serving.is_finished() {
        drop(TcpStream::connect(url.trim_start_matches("http://")));
    }
    serving.join().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drip_is_cut_as_soon_as_somebody_wants_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // A comment, a byte at a time: signs of life for ever, and never a token.
    let serving = std::thread::spawn(move || {
        let (mut io, _) = listener.accept().unwrap();
        io.set_nodelay(true).unwrap();
        io.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n:").unwrap();
        let mut dripped = 0;
        while io.write_all(b" ").is_ok() {
            dripped += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        dripped
    });
    let mut connection = connection(&url);
    let cut = CancellationToken::new();
    let cutting = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cut.cancel();
    };
    let counters = SlotCounters::default();
    let (outcome, ()) = tokio::join!(connection.stream(ask(), &counters, &cut), cutting);
    assert_eq!(outcome.trace.end, RequestEnd::Cut);
    drop(connection);
    assert!(serving.join().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_not_followed_and_the_key_goes_nowhere() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = elsewhere.local_addr().unwrap();
    let said = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{place}/v1/models\r\ncontent-length: 0\r\n\
         connection: close\r\n\r\n"
    );
    let (url, serving) = server(&said, Then::HalfCloses, 3);
    let target = Target { url: parse_target(&url).unwrap(), key: Secret::new("sk-only-for-the-target") };
    let answer = Http::new(&target).unwrap().get("/v1/models").await.unwrap();
    assert_eq!(answer.status, 307);
    let refused = probe(&target, None).await.unwrap_err().to_string();
    let outcome = asked(&mut Connection::new(&target, Clock::start()).unwrap()).await;
    let RequestEnd::Failed(failure) = outcome.trace.end else { panic!("it was followed") };
    assert_eq!(failure.kind, FailureKind::Redirect);
    for words in [&refused, &failure.text] {
        assert!(words.contains(&place.to_string()) && !words.contains("sk-only"), "{words}");
    }
    tokio::task::spawn_blocking(|| serving.join().unwrap()).await.unwrap();
    // Nobody asked there.
    elsewhere.set_nonblocking(true).unwrap();
    assert_eq!(elsewhere.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_without_an_end_is_given_up() {
    let (url, serving) = server("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n", Then::Repeats("vllm:a 1\n"), 1);
    let http = Http::new(&Target { url: parse_target(&url).unwrap(), key: None }).unwrap();
    let error = http.get("/metrics").await.unwrap_err().to_string();
    drop(http);
    assert!(serving.join().unwrap() < MOST_SENT);
    insta::assert_snapshot!(error.replace(&url, "URL"), @"URL/metrics answered with more than 8 MiB: check that it is the address of a model server");
}
