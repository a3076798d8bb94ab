//! The job done by the product's own client.

use std::{io, sync::Arc};

use bytes::Bytes;
use speedmatrix_agent::{
    client::{Ask, Body, Connection, KeepText, Outcome, SlotCounters, Target},
    clock::Clock,
};
use speedmatrix_shared::{plan::draft::parse_target, trace::RequestEnd, units::Nanos};
use tokio::{sync::Barrier, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::job::{Detail, Job, Report, Row, cpu_nanos, document, memory_bytes, monotonic_nanos, parts, runtime};

/// Reads the job's streams.
pub(crate) fn run(job: &Job) -> io::Result<Report> {
    runtime()?.block_on(read(job))
}

async fn read(job: &Job) -> io::Result<Report> {
    let url = parse_target(&job.url).map_err(io::Error::other)?;
    let target = Target { url, key: None };
    // The two clocks are read side by side: what lies between is below a microsecond.
    let (clock, start) = (Clock::start(), monotonic_nanos());
    let document = Bytes::from(document(job));
    let barrier = Arc::new(Barrier::new(job.streams as usize + 1));
    let mut tasks = JoinSet::new();
    for slot in 0..job.streams {
        let mut connection = Connection::new(&target, clock).map_err(io::Error::other)?;
        let opened = connection.open().await;
        opened.map_err(|failure| io::Error::other(failure.text))?;
        let asks: Vec<Ask> = (0..job.requests).map(|request| ask(job, &document, slot, request)).collect();
        let barrier = Arc::clone(&barrier);
        tasks.spawn(async move {
            barrier.wait().await;
            let (counters, cut) = (SlotCounters::default(), CancellationToken::new());
            let mut outcomes = Vec::with_capacity(asks.len());
            for ask in asks {
                outcomes.push(connection.stream(ask, &counters, &cut).await);
            }
            outcomes
        });
    }
    let cpu = cpu_nanos();
    barrier.wait().await;
    let outcomes = tasks.join_all().await;
    let (cpu_nanos, memory_bytes) = (cpu_nanos() - cpu, memory_bytes());
    let requests = outcomes.iter().flatten().map(|outcome| row(job, outcome, start)).collect();
    Ok(Report { cpu_nanos, memory_bytes, requests })
}

fn ask(job: &Job, document: &Bytes, slot: u32, request: u32) -> Ask {
    let (head, tail) = parts(job, u64::from(slot) * u64::from(job.requests) + u64::from(request));
    Ask {
        slot,
        scheduled: Nanos(0),
        path: "/v1/chat/completions",
        body: Body::new([Bytes::from(head), document.clone(), Bytes::from(tail)], job.tokens),
        keep_text: KeepText::No,
        idle_limit: Nanos::from_secs(120),
    }
}

fn row(job: &Job, outcome: &Outcome, start: u64) -> Row {
    let trace = &outcome.trace;
    let at = |time: Option<Nanos>| time.map_or(0, |time| start + time.0);
    let arrivals = match job.detail {
        Detail::Ends => Vec::new(),
        Detail::Arrivals => {
            trace.arrivals.iter().filter_map(|a| Some((start + a.at.0, u64::from(a.usage_tokens?.get())))).collect()
        }
    };
    Row {
        id: outcome.request_id.clone(),
        sent: at(trace.send_started),
        first: at(trace.first_arrival()),
        last: at(trace.last_arrival()),
        tokens: trace.output_tokens().0,
        events: trace.text_events(),
        reads: trace.arrivals.len() as u64,
        coalesced: u64::from(trace.coalesced_reads),
        first_with: trace.arrivals.first().map_or(0, |first| u64::from(first.text_events)),
        arrivals,
        failure: match &trace.end {
            RequestEnd::Failed(failure) => Some(failure.text.clone()),
            _ => None,
        },
    }
}
