//! What is read as a whole: files that people bring, logs, plans, what live sockets tell, records of cells.

use serde::{Serialize, de::DeserializeOwned};
use speedmatrix_shared::{
    api::{Enter, NewPass, ServerMessage, StartRun},
    compare::{Comparison, Ranked},
    detail::CellDetail,
    event::{Envelope, RunEvent},
    export::{ExportFormat, file_stem, render_labelled},
    facts, feasible,
    id::RunId,
    import,
    label::{LabelPatch, Labels},
    plan::{PlanDraft, RunPlan, command::command, eta},
    raw::codec,
    state::{Applied, RunState},
    steer::Steer,
    target::Limits,
    units::Nanos,
};

/// Most results that are compared: every pair of cells costs.
const MOST_COMPARED: usize = 64;

fn id() -> RunId {
    RunId::REFERENCE.parse().expect("it is an id")
}

/// A file that is read is a run that can be stored, shown and written again, or a refusal.
pub(crate) fn import(bytes: &[u8]) {
    let Ok(imports) = import::read(bytes) else { return };
    assert!(!imports.is_empty(), "what holds no run is refused");
    for import in imports {
        let events = import::events(&import.run);
        let folded = RunState::fold(import.run.id.clone(), &events).expect("its events follow on each other");
        shown(&folded.expect("it has events"), &import.labels);
        shown(&import.run, &import.labels);
    }
}

/// All that pages and files say of a run.
fn shown(run: &RunState, labels: &Labels) {
    for format in ExportFormat::ALL {
        render_labelled(run, labels, format);
    }
    assert!(!file_stem(run, labels).contains(['/', '\\', '\0']));
    facts::summary(run);
    facts::kpis(run);
    facts::run_facts(run);
    feasible::groups(&run.plan, run.facts.as_ref().map(|facts| facts.limits).unwrap_or_default());
    assert!(eta::remaining_secs(run, run.at).is_none_or(f64::is_finite));
    if run.cells.len() <= MOST_COMPARED
        && let Some(metric) = Ranked::all().next()
    {
        Comparison::of(run, run, metric, 0.02).sentence();
    }
}

/// Events of a log, one a line; those that are none or do not follow are not there.
fn applied(bytes: &[u8]) -> Option<(Vec<Envelope>, RunState)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut told = text.lines().filter_map(|line| serde_json::from_str::<RunEvent>(line).ok()).zip(0_u64..);
    let envelope = |seq: u64, number: u64, event| Envelope { seq, at: Nanos(number * 1_000_000), event };
    let (event, _) = told.next()?;
    let first = envelope(0, 0, event);
    let mut state = RunState::start(id(), &first).ok()?;
    let mut log = vec![first];
    for (event, number) in told {
        let next = envelope(state.next_seq, number, event);
        let before = state.clone();
        match state.apply(&next) {
            Ok(applied) => {
                assert_eq!(applied, Applied::New);
                log.push(next);
            }
            Err(_) => assert!(state == before, "an event that is refused changes nothing"),
        }
    }
    Some((log, state))
}

/// A log folds to one state, whenever one joins, and whatever it holds can be shown.
pub(crate) fn log(bytes: &[u8]) {
    let Some((log, state)) = applied(bytes) else { return };
    assert!(RunState::fold(id(), &log).expect("it was applied").as_ref() == Some(&state));
    let joined = log.len() / 2;
    if let Some(mut late) = RunState::fold(id(), &log[..joined]).expect("it was applied") {
        for envelope in &log {
            late.apply(envelope).expect("what is known is passed over, and the rest follows");
        }
        assert!(late == state, "joined at {joined}");
    }
    shown(&state, &Labels::default());
}

/// A plan's text is refused with reasons, or is a plan of bounded size that reads the same from its own file.
pub(crate) fn plan(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let draft = if text.starts_with('{') {
        let Ok(draft) = serde_json::from_str::<PlanDraft>(text) else { return };
        draft
    } else {
        typed(text)
    };
    let Ok(plan) = RunPlan::try_from(draft) else { return };
    let cells = plan.cells();
    assert!(!cells.is_empty() && cells.len() <= 1_024, "{} cells", cells.len());
    for round in 0..plan.repeats().most() {
        plan.round(round);
    }
    let json = serde_json::to_string(&plan).expect("a plan is JSON");
    assert!(serde_json::from_str::<RunPlan>(&json).expect("its own JSON is read") == plan);
    eta::least_prompt_tokens(&plan);
    command(&plan);
    let told = Limits { max_model_len: Some(1), kv_tokens: Some(0), max_sequences: Some(0) };
    for limits in [Limits::default(), told] {
        feasible::groups(&plan, limits);
        eta::eta(&plan, limits);
    }
}

/// A form: each line is a field.
fn typed(text: &str) -> PlanDraft {
    let mut draft = PlanDraft::default();
    let fields = draft.fields().map(|(field, _)| field);
    for (field, line) in fields.into_iter().zip(text.lines()) {
        line.clone_into(draft.field_mut(field));
    }
    draft
}

/// What a socket tells is folded or refused; so is every body that a client sends.
pub(crate) fn live(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut run: Option<RunState> = None;
    for line in text.lines() {
        match serde_json::from_str::<ServerMessage>(line) {
            Ok(ServerMessage::Snapshot { state, .. }) => run = Some(*state),
            Ok(ServerMessage::Event { envelope }) => {
                if let Some(run) = &mut run {
                    run.apply(&envelope).ok();
                }
            }
            Ok(_) => {}
            Err(_) => bodies(line),
        }
    }
    if let Some(run) = run {
        shown(&run, &Labels::default());
    }
}

fn bodies(line: &str) {
    fn read<T: DeserializeOwned + Serialize>(line: &str) -> Option<T> {
        let body = serde_json::from_str::<T>(line).ok()?;
        serde_json::to_string(&body).expect("what was read can be written");
        Some(body)
    }
    read::<StartRun>(line);
    read::<Steer>(line);
    read::<NewPass>(line);
    read::<Enter>(line);
    if let Some(patch) = read::<LabelPatch>(line) {
        drop(Labels::default().changed(&patch));
    }
}

/// A packed record is refused, or gives a result and a page, and packs again to what reads the same.
pub(crate) fn record(bytes: &[u8]) {
    let Ok(raw) = codec::decode(bytes) else { return };
    raw.result();
    let detail = CellDetail::of(&raw);
    serde_json::to_string(&detail).expect("a page's answer is JSON");
    if let Ok(packed) = codec::encode(raw.clone()) {
        assert!(codec::decode(&packed).expect("what was packed is read") == raw);
    }
}

/// Seeds that are made from the sample run, cut to a few cells.
#[cfg(test)]
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut events = speedmatrix_shared::sample::reference_events();
    let last = events.pop().expect("it has an end");
    events.truncate(14);
    if let Some(RunEvent::RunStarted { plan, .. }) = events.first_mut().map(|first| &mut first.event) {
        let draft = PlanDraft {
            target: "http://127.0.0.1:8000".into(),
            contexts: "8K,16K".into(),
            concurrency: "1,2".into(),
            prefill_contexts: "8K".into(),
            ..PlanDraft::default()
        };
        *plan = draft.try_into().expect("it is a plan");
    }
    let lines = |texts: Vec<String>| texts.join("\n").into_bytes();
    let json = |event: &RunEvent| serde_json::to_string(event).expect("an event is JSON");
    let log = lines(events.iter().chain([&last]).map(|envelope| json(&envelope.event)).collect());
    let (all, state) = applied(&log).expect("it is a log");
    let message = |message: ServerMessage| serde_json::to_string(&message).expect("a message is JSON");
    let start = RunState::fold(id(), &all[..3]).expect("it folds").expect("it has events");
    let mut live = vec![message(ServerMessage::Snapshot { state: Box::new(start), now_ns: 1 })];
    live.extend(all[3..].iter().map(|envelope| message(ServerMessage::Event { envelope: envelope.clone() })));
    let own = render_labelled(&state, &Labels::default(), ExportFormat::Json);
    vec![("log/sample", log), ("live/sample", lines(live)), ("import/own", own.into_bytes())]
}
