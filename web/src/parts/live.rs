//! A run while it runs: how far it is, what the running cell does and waits for, and the log.

use gloo_timers::future::TimeoutFuture;
use leptos::prelude::*;
use speedmatrix_shared::{
    event::LogLevel,
    format,
    gauge::{CellPhase, Gauge},
    id::{CellId, Phase},
    metric::{self, METRICS},
    plan::eta::remaining_secs,
    state::{LogLine, RunState, RunStatus},
    units::Nanos,
};

use super::{live_charts::LiveCharts, reins::Reins, run_card::share};
use crate::{
    chart::{
        cell::{Look, cell_words, view as cell_view},
        line::roughly,
    },
    live::LiveRun,
    shell::{Conn, Shell},
};

/// Log lines that are shown, latest first.
const LINES_SHOWN: usize = 200;

/// Whether the run runs, or ran when this page was opened: what was seen then stays, so that nothing moves at the end.
pub fn seen_live(run: LiveRun) -> Memo<bool> {
    let runs = move || run.state.with(|state| state.status == RunStatus::Running);
    Memo::new(move |before: Option<&bool>| before == Some(&true) || runs())
}

/// How far the run is, and its reins.
#[component]
pub fn LivePart(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let seen = seen_live(run);
    let conn = Shell::of_app().conn;
    let stale = move || conn.with(Conn::is_stale).then_some("stale");
    move || {
        seen.get().then(|| {
            view! {
                <section id="live" aria-labelledby="live-title" class=stale data-testid="live">
                    <h2 id="live-title" class="sr">"Live"</h2>
                    <Announcer run/>
                    <LiveBar run/>
                </section>
            }
        })
    }
}

/// What the running cell does: its steps and its charts. Beside the matrix where there is room.
#[component]
pub fn LiveSide(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let conn = Shell::of_app().conn;
    let stale = move || conn.with(Conn::is_stale);
    view! {
        <div class="live-side" class:stale=stale>
            <RunningCell run/>
            <LiveCharts run/>
        </div>
    }
}

/// Milliseconds between two announcements: a screen reader must have time for other things.
const ANNOUNCED_EVERY_MS: u32 = 10_000;

/// Says now and then what was measured and how far the run is, for those who do not see it.
#[component]
fn Announcer(run: LiveRun) -> impl IntoView {
    let said = RwSignal::new(String::new());
    leptos::task::spawn_local_scoped_with_cancellation(async move {
        loop {
            TimeoutFuture::new(ANNOUNCED_EVERY_MS).await;
            let latest = run.latest_done.get_untracked();
            let now = run.state.with_untracked(|state| announcement(state, latest));
            said.maybe_update(|said| {
                let news = *said != now;
                *said = now;
                news
            });
        }
    });
    view! { <p class="sr" aria-live="polite" data-testid="announced">{move || said.get()}</p> }
}

/// `8K context, 16 requests at once: 1,540.5 tokens per second … 3 of 8 cells done.`
fn announcement(state: &RunState, latest: Option<CellId>) -> String {
    let (done, all) = state.progress();
    let latest = latest.and_then(|id| state.cell(id)).filter(|cell| cell.result().is_some());
    let look = Look { metric: metric::by_key(SAID).unwrap_or(&METRICS[0]), range: None, gauge: None, order: None };
    let latest = latest.map(|cell| format!("{}. ", cell_view(cell, look).sentence)).unwrap_or_default();
    let end = if state.status == RunStatus::Running { "" } else { " The run has ended." };
    format!("{latest}{done} of {all} cells done.{end}")
}

/// The number of a cell that is announced.
const SAID: &str = "total_tok_s";

/// Said to a viewer in the place of the controls.
const ONLY_LOOKS: &str = "You watch: your link allows to look, not to pause or stop.";

#[component]
fn LiveBar(run: LiveRun) -> impl IntoView {
    let may_act = Shell::of_app().may_act;
    let progress = Memo::new(move |_| run.state.with(RunState::progress));
    let elapsed = Memo::new(move |_| format::clock(Some(run.now.get().as_secs_f64())));
    let running = Memo::new(move |_| run.state.with(|state| state.status == RunStatus::Running));
    let rest =
        Memo::new(move |_| run.state.with(|state| running.get().then(|| remaining(state, run.now.get())).flatten()));
    let words = move || {
        let (done, all) = progress.get();
        format!("{done} of {all} cells")
    };
    view! {
        <div class="panel live-bar">
            <p class="now">
                <b data-testid="elapsed">{move || elapsed.get()}</b>
                " elapsed · "
                {move || words()}
                {move || rest.get().map(|rest| view! { " · "<span data-testid="eta">{rest}</span> })}
            </p>
            <div
                class="progress"
                role="progressbar"
                aria-label="Cells done"
                aria-valuenow=move || progress.get().0
                aria-valuemax=move || progress.get().1
                aria-valuetext=words
            >
                <i style=("--done", move || share(progress.get().0, progress.get().1))></i>
            </div>
            {move || {
                running.get().then(|| {
                    if may_act.get() {
                        view! { <Reins run/> }.into_any()
                    } else {
                        view! { <p class="now" data-testid="only-looks">{ONLY_LOOKS}</p> }.into_any()
                    }
                })
            }}
        </div>
    }
}

/// `about 12 min left`: the cells still to come at the pace of the plan.
fn remaining(state: &RunState, now: Nanos) -> Option<String> {
    let left_s = remaining_secs(state, now)?;
    Some(format!("about {} left", roughly(left_s)))
}

#[component]
fn RunningCell(run: LiveRun) -> impl IntoView {
    let cell = Memo::new(move |_| run.state.with(|state| state.running_cell().map(|cell| cell.id)));
    let gauge = Memo::new(move |_| run.gauge.get().filter(|gauge| Some(gauge.cell) == cell.get()));
    let phase = Memo::new(move |_| gauge.with(|gauge| gauge.as_ref().map(|gauge| gauge.phase)));
    let window_s = run.state.with_untracked(|state| state.plan.duration().as_secs_f64());
    let repeat = Memo::new(move |_| run.state.with(repeat));
    let ended = Memo::new(move |_| run.state.with(|state| state.status != RunStatus::Running));
    let idle = move || (if ended.get() { "No cell is running" } else { "Preparing" }).to_owned();
    let waits = move || match cell.get() {
        _ if ended.get() => "The run has ended.".to_owned(),
        None if run.state.with(RunState::is_paused) => {
            "Paused: the next cell waits until the run may go on.".to_owned()
        }
        None => "Between two cells.".to_owned(),
        Some(_) => {
            gauge.with(|gauge| gauge.as_ref().map_or_else(|| "Starting.".to_owned(), |gauge| waits(gauge, window_s)))
        }
    };
    view! {
        <div class="panel pad" data-testid="running-cell">
            <h3>{move || cell.get().map_or_else(idle, title)}</h3>
            <ol class="steps" aria-label="Steps of this cell">
                {steps(phase)}
                {move || repeat.get().map(|words| view! { <li data-step="repeat" class="repeat">{words}</li> })}
            </ol>
            <p class="waits" data-testid="waits">{waits}</p>
            <dl class="gauges">{gauges(gauge)}</dl>
        </div>
    }
}

/// `repeat 2 of 4`, where the running cell is measured several times.
fn repeat(state: &RunState) -> Option<String> {
    let most = state.plan.repeats().most();
    let cell = state.running_cell().filter(|cell| cell.id.phase == Phase::Decode && most > 1)?;
    Some(format!("repeat {} of {most}", cell.repeats.len() + 1))
}

fn title(id: CellId) -> String {
    format!("{}: {}", id.phase.label(), cell_words(id))
}

/// The steps in their order; closing comes after the last.
const STEPS: [CellPhase; 4] = [CellPhase::Drain, CellPhase::Cache, CellPhase::Ramp, CellPhase::Measure];

fn place(phase: CellPhase) -> usize {
    STEPS.into_iter().position(|step| step == phase).unwrap_or(STEPS.len())
}

fn steps(phase: Memo<Option<CellPhase>>) -> impl IntoView {
    let step = move |step: CellPhase| {
        let current = move || (phase.get() == Some(step)).then_some("step");
        let done = move || phase.get().is_some_and(|phase| place(phase) > place(step)).then_some("done");
        view! { <li class=done aria-current=current data-step=step.label()>{step.label()}</li> }
    };
    STEPS.map(step).collect_view()
}

/// What the running cell waits for, in a sentence.
fn waits(gauge: &Gauge, window_s: f64) -> String {
    let since = format::duration_words(Some(gauge.phase_for_s));
    match (gauge.phase, gauge.cell.phase) {
        (CellPhase::Drain, _) => format!("Drain: waiting until the engine is idle, for {since} so far."),
        (CellPhase::Cache, Phase::Decode) => format!("Cache: the prompt is being cached, for {since} so far."),
        (CellPhase::Cache, Phase::Prefill) => format!("Cache: cold prompts are being read, for {since} so far."),
        (CellPhase::Ramp, _) => {
            let all = gauge.cell.concurrency;
            format!("Ramp: {} of {all} streams have a first token, after {since}.", gauge.decoding)
        }
        (CellPhase::Measure, Phase::Decode) => {
            format!("Measure: {since} of {} are measured.", format::duration_words(Some(window_s)))
        }
        (CellPhase::Measure, Phase::Prefill) => format!("Measure: for {since} so far."),
        (CellPhase::Stop, _) => "Stop: the requests are being closed.".to_owned(),
    }
}

fn gauges(gauge: Memo<Option<Gauge>>) -> impl IntoView {
    let count = |number: Option<u32>| format::count(number.map(u64::from));
    let value = move |read: fn(&Gauge) -> Option<u32>| move || count(gauge.with(|gauge| gauge.as_ref().and_then(read)));
    let rate = move || format::rate(gauge.with(|gauge| gauge.as_ref().and_then(|gauge| gauge.tok_s)));
    view! {
        <div><dt>"Token rate"</dt><dd data-testid="rate">{rate}" "<small>"tok/s"</small></dd></div>
        <div><dt>"In flight"</dt><dd>{value(|gauge| Some(gauge.in_flight))}</dd></div>
        <div><dt>"Decoding"</dt><dd>{value(|gauge| Some(gauge.decoding))}</dd></div>
        <div><dt>"Waiting in the engine"</dt><dd>{value(|gauge| gauge.waiting)}</dd></div>
    }
}

/// The latest lines of the log, newest first.
#[component]
pub fn Log(
    /// The run.
    run: LiveRun,
) -> impl IntoView {
    let lines = Memo::new(move |_| {
        run.state.with(|state| state.log.iter().rev().take(LINES_SHOWN).cloned().collect::<Vec<_>>())
    });
    let line = |line: LogLine| {
        view! {
            <li class=(line.level == LogLevel::Warning).then_some("warn")>
                <time>{format::clock(Some(line.at.as_secs_f64()))}</time>
                <span>{line.text}</span>
            </li>
        }
    };
    let some = move || lines.with(|lines| !lines.is_empty());
    move || {
        some().then(|| {
            view! {
                <section class="panel log-panel" aria-labelledby="log-title" data-testid="log">
                    <h3 id="log-title">"Log"</h3>
                    <ol class="log" tabindex="0" aria-labelledby="log-title">
                        {move || lines.get().into_iter().map(line).collect_view()}
                    </ol>
                </section>
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_cell_says_what_it_waits_for() {
        let gauge = |phase, cell: &str| Gauge {
            at: Nanos(0),
            cell: cell.parse().unwrap(),
            phase,
            phase_for_s: 4.0,
            tok_s: None,
            in_flight: 128,
            decoding: 117,
            waiting: None,
            window_tok_s: None,
            running: None,
            kv_usage: None,
            gpu: None,
            lateness_s: None,
        };
        let check = |phase, cell, words: &str| assert_eq!(waits(&gauge(phase, cell), 30.0), words);
        check(CellPhase::Ramp, "decode-8K-128", "Ramp: 117 of 128 streams have a first token, after 4 s.");
        check(CellPhase::Measure, "decode-8K-128", "Measure: 4 s of 30 s are measured.");
        check(CellPhase::Cache, "prefill-8K-1", "Cache: cold prompts are being read, for 4 s so far.");
    }

    #[test]
    fn a_measured_cell_is_announced_with_its_number() {
        let state = speedmatrix_shared::sample::reference();
        let words = announcement(&state, "decode-8K-16".parse().ok());
        assert!(words.starts_with("8K context, 16 requests at once: 1,540.5"), "{words}");
        assert!(words.ends_with(". 73 of 73 cells done. The run has ended."), "{words}");
        assert_eq!(announcement(&state, None), "73 of 73 cells done. The run has ended.");
    }
}
