//! Files that come in one after the other.

use std::sync::{Arc, mpsc};

use axum::{
    body::Body,
    http::{Request, header},
};
use speedmatrix_agent::{
    runs::Runs,
    server::{AllowedHosts, AppState, Door, app},
    store::{Access, Store},
};
use speedmatrix_shared::api::path;
use tower::ServiceExt as _;

#[test]
fn a_file_whose_sender_left_keeps_its_turn_until_it_is_read() {
    // One thread for what takes long: the reading waits behind what the test holds there.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().max_blocking_threads(1).build().unwrap().block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("runs.sqlite3"), Access::Serve).await.unwrap();
        let hosts = AllowedHosts::new("127.0.0.1:1".parse().unwrap(), []);
        let state = AppState::new(Runs::new(store), Vec::new(), hosts, Door::Open);
        let reading = Arc::clone(&state.reading);
        let (held, wait) = mpsc::channel::<()>();
        let holding = tokio::task::spawn_blocking(move || wait.recv());
        let request = Request::post(path::IMPORT).header(header::HOST, "localhost").body(Body::from("{}")).unwrap();
        let sent = tokio::spawn(app(state).oneshot(request));
        while reading.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        sent.abort();
        assert!(sent.await.unwrap_err().is_cancelled());
        assert_eq!(reading.available_permits(), 0);
        drop(held);
        assert!(holding.await.unwrap().is_err());
        drop(reading.acquire().await.unwrap());
    });
}
