//! An engine that must be told to end a request: it goes on generating after its client has hung up.

use std::{
    collections::BTreeSet,
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use crate::rig::{Rig, draft, exact, simulator};

/// What clients sent, connection by connection.
type Heard = Arc<Mutex<Vec<Vec<u8>>>>;

/// A wire to `server` that hears what clients say. Gives its address.
fn wire(server: &str, heard: &Heard) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (server, heard) = (server.trim_start_matches("http://").to_owned(), Arc::clone(heard));
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
            heard.lock().unwrap().push(Vec::new());
            let heard = Arc::clone(&heard);
            carry(client.try_clone().unwrap(), server.try_clone().unwrap(), move |bytes| {
                heard.lock().unwrap()[number].extend_from_slice(bytes);
            });
            carry(server, client, |_| {});
        }
    });
    address
}

/// Carries bytes one way until that side ends or breaks; then both connections are over.
fn carry(mut from: TcpStream, mut to: TcpStream, hear: impl Fn(&[u8]) + Send + 'static) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4 << 10];
        let mut piece = || -> io::Result<usize> {
            let length = from.read(&mut buffer)?;
            hear(&buffer[..length]);
            to.write_all(&buffer[..length]).map(|()| length)
        };
        while matches!(piece(), Ok(1..)) {}
        from.shutdown(std::net::Shutdown::Both).ok();
        to.shutdown(std::net::Shutdown::Both).ok();
    });
}

/// The ids that requests to `path` carried, in order of their connections.
fn rids(heard: &Heard, path: &str) -> Vec<String> {
    let heard = heard.lock().unwrap();
    let texts = heard.iter().map(|bytes| String::from_utf8_lossy(bytes));
    let requests: Vec<String> =
        texts.flat_map(|text| text.split("POST ").map(str::to_owned).collect::<Vec<_>>()).collect();
    let of_path = requests.iter().filter(|request| request.starts_with(path));
    let rid = |request: &String| Some(request.split_once("\"rid\":\"")?.1.split('"').next()?.to_owned());
    of_path.filter_map(rid).collect()
}

#[test]
fn requests_that_were_cut_are_ended_in_an_engine_that_must_be_told() {
    let heard = Heard::default();
    let sim = simulator(exact(4.0));
    let mut rig = Rig::new(&wire(&sim.base_url(), &heard));
    rig.adjust = |facts| facts.engine.engine = Some("sglang".to_owned());
    rig.run(draft("1K", "4", "2s", "100000"));
    let (asked, ended) = (rids(&heard, "/v1/chat/completions"), rids(&heard, "/abort_request"));
    let different: BTreeSet<&String> = asked.iter().collect();
    assert_eq!(different.len(), asked.len(), "each request has an id of its own");
    assert_eq!(ended.len(), 4, "the four that were in flight at the end of the window: {ended:?}");
    assert!(ended.iter().all(|rid| different.contains(rid)), "{ended:?} of {asked:?}");
}

#[test]
fn other_engines_get_no_ids_and_are_told_nothing() {
    let heard = Heard::default();
    let sim = simulator(exact(4.0));
    let rig = Rig::new(&wire(&sim.base_url(), &heard));
    rig.run(draft("1K", "2", "1s", "100000"));
    assert_eq!((rids(&heard, "/v1/chat/completions").len(), rids(&heard, "/abort_request").len()), (0, 0));
}
