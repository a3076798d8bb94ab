//! Plans read, refuse and write what they should.

use proptest::prelude::*;

use super::{Field, PlanDraft, RunPlan, command::command, draft::parse_target, eta, presets::PRESETS};
use crate::{
    event::{Envelope, Origin, RunEvent},
    id::RunId,
    sample,
    state::RunState,
    stats::cell::CellResult,
    target::{Limits, TargetFacts},
    units::Nanos,
};

fn draft(fields: &[(Field, &str)]) -> PlanDraft {
    let mut draft = PlanDraft {
        target: "127.0.0.1:8000".into(),
        contexts: "8K,16K".into(),
        concurrency: "1,2".into(),
        ..PlanDraft::default()
    };
    for (field, text) in fields {
        *draft.field_mut(*field) = (*text).to_owned();
    }
    draft
}

fn plan(fields: &[(Field, &str)]) -> RunPlan {
    RunPlan::try_from(draft(fields)).unwrap()
}

#[test]
fn every_field_says_what_is_wrong() {
    let check = |field: Field, text: &str, wanted: &str| {
        let errors = RunPlan::try_from(draft(&[(field, text)])).unwrap_err().0;
        let told: Vec<_> = errors.iter().map(|error| (error.field, error.message.as_str())).collect();
        assert_eq!(told, [(field, wanted)], "{text}");
    };
    check(Field::Target, "", "give the address of the server, for example http://127.0.0.1:8000");
    check(Field::Target, "ftp://x", "\"ftp\" can't be measured: the address starts with http:// or https://");
    check(Field::Target, "http://a b", "an address has no spaces in it");
    check(Field::Target, "http://u:p@x", "keep user names and keys out of the address: give the key in its own field");
    check(Field::Target, "http://", "\"\" names no host: write for example http://127.0.0.1:8000");
    check(Field::Target, "http://x:0", "\"0\" is not a port: 1 to 65535");
    check(Field::Target, "http://x:99999", "\"99999\" is not a port: 1 to 65535");
    check(Field::Target, &"x".repeat(2_001), "an address of over 2000 bytes is not read");
    check(Field::Model, &"x".repeat(10_001), "at most 10000 characters");
    check(Field::Name, &"x".repeat(10_001), "at most 10000 characters");
    check(Field::Contexts, "", "give at least one context length, for example 8K,16K");
    // Whatever stands between no items: a plan without cells measures nothing.
    check(Field::Contexts, "\u{b}\t,;\n", "give at least one context length, for example 8K,16K");
    check(Field::Concurrency, "\t", "give at least one number of requests at once, for example 1,2,4");
    check(Field::Contexts, "8K,x", "\"x\" is not a size: write tokens as 8K, 1019K, 1M or 8192");
    check(Field::Contexts, "0", "context length must be between 1 and 16384K, not 0");
    check(Field::Concurrency, "", "give at least one number of requests at once, for example 1,2,4");
    check(Field::Concurrency, "1.5", "\"1.5\" is not a whole number");
    check(Field::Concurrency, "2000", "requests at once must be between 1 and 1024, not 2000");
    check(Field::PrefillContexts, "all", "\"all\" is not a size: write tokens as 8K, 1019K, 1M or 8192");
    check(Field::Duration, "soon", "\"soon\" is not a duration: write 30s, 5m, 1h or 500ms");
    check(Field::Duration, "50ms", "a window is between 100ms and 24h long");
    check(Field::MaxOutput, "0", "between 1 and 1024K output tokens");
    check(Field::MaxOutput, "x", "\"x\" is not a size: write tokens as 8K, 1019K, 1M or 8192");
    check(Field::Prompts, "warm", "\"warm\" is unknown: choose shared, unique, mixed:40% or cold");
    check(
        Field::Load,
        "steady",
        "\"steady\" is unknown: choose sustained, burst:100, mixed:1K, open:constant, open:poisson or open:ramp",
    );
    check(Field::Questions, "same", "\"same\" is unknown: choose varied or identical");
    check(Field::Order, "up", "\"up\" is unknown: choose rows, shuffled or interleaved");
    check(Field::Repeats, "0", "\"0\" is no number of repeats: write 3, or 3% for a precision, or 10,3% for both");
    check(Field::LeaveOut, "64Kx1", "64Kx1 is no cell of this matrix");
    check(
        Field::LeaveOut,
        "8Kx1,8Kx2,16Kx1,16Kx2",
        "all cells are left out: leave one in, or measure prefill rows only",
    );
    check(Field::Seed, "-1", "\"-1\" is not a whole number");
}

#[test]
fn all_errors_come_at_once_in_the_order_of_the_form() {
    let fields = [Field::Seed, Field::Prompts, Field::Duration, Field::Contexts, Field::Target];
    let wrong: Vec<(Field, &str)> = fields.iter().map(|field| (*field, "?!")).collect();
    let errors = RunPlan::try_from(draft(&wrong)).unwrap_err();
    let told: Vec<Field> = errors.0.iter().map(|error| error.field).collect();
    assert_eq!(told, [Field::Target, Field::Contexts, Field::Duration, Field::Prompts, Field::Seed]);
    assert!(errors.to_string().contains("; --contexts: \"?!\" is not a size"), "{errors}");
    let many = (1..=64).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let errors = RunPlan::try_from(draft(&[(Field::Contexts, &many), (Field::Concurrency, &many)])).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "--contexts: 4160 cells are more than one run holds (1024): take fewer contexts or levels"
    );
}

#[test]
fn an_empty_list_of_prefill_contexts_is_none_given() {
    for text in ["", ",", " ; \t,\n"] {
        assert_eq!(plan(&[(Field::PrefillContexts, text)]), plan(&[]), "{text:?}");
    }
}

#[test]
fn addresses_lose_what_is_not_theirs() {
    let check = |text: &str, wanted: &str| {
        assert_eq!(parse_target(text).map(|url| url.as_str().to_owned()).as_deref(), Ok(wanted), "{text}");
    };
    check("localhost:8000", "http://localhost:8000");
    check(" HTTP://LocalHost:8000/ ", "http://localhost:8000");
    check("https://host/v1/", "https://host");
    check("https://host/v1/chat/completions", "https://host");
    check("https://host/api/v1/models?x=1#y", "https://host/api");
    check("http://host/a//v1//v1", "http://host/a");
    check("http://host/models", "http://host");
    check("http://host/my-models", "http://host/my-models");
    check("http://[::1]:8000/v1", "http://[::1]:8000");
}

#[test]
fn cells_come_in_run_order() {
    let check = |fields: &[(Field, &str)], wanted: &[&str]| {
        let cells: Vec<String> = plan(fields).cells().iter().map(ToString::to_string).collect();
        assert_eq!(cells, wanted);
    };
    let both = ["prefill-8K-1", "prefill-16K-1", "decode-8K-1", "decode-16K-1", "decode-8K-2", "decode-16K-2"];
    check(&[(Field::Contexts, "16K 8K,8K")], &both);
    check(&[(Field::PrefillContexts, "none")], &both[2..]);
    check(&[(Field::PrefillContexts, "32K"), (Field::Contexts, ""), (Field::Concurrency, "")], &["prefill-32K-1"]);
    check(
        &[(Field::LeaveOut, "16Kx2"), (Field::PrefillContexts, "none")],
        &["decode-8K-1", "decode-16K-1", "decode-8K-2"],
    );
    let without_16k = ["prefill-8K-1", "decode-8K-1", "decode-8K-2"];
    check(&[(Field::LeaveOut, "16K×2,16K×1")], &without_16k);
    let limits = Limits { max_model_len: Some(16_384 + 1_000), ..Limits::default() };
    let plan = plan(&[]);
    let fits: Vec<Option<bool>> = plan.cells().iter().map(|cell| plan.fits_model_length(*cell, limits)).collect();
    assert_eq!(fits, [true, true, true, false, true, false].map(Some));
    assert_eq!(plan.fits_model_length(plan.cells()[0], Limits::default()), None);
}

#[test]
fn rounds_hold_every_cell_once_in_their_own_order() {
    let check = |order: &str, same: bool| {
        let plan = plan(&[(Field::Order, order), (Field::Concurrency, "1,2,4,8"), (Field::Seed, "7")]);
        let [cells, first, second] = [plan.cells(), plan.round(0), plan.round(1)];
        let sorted = |mut cells: Vec<_>| {
            cells.sort();
            cells
        };
        assert_eq!(sorted(first.clone()), sorted(cells.clone()), "{order}");
        assert_eq!(first[..2], cells[..2], "{order}: prefill stays in front");
        assert_eq!((first == cells, second == first), (same, same), "{order}");
    };
    check("rows", true);
    check("shuffled", false);
    check("interleaved", false);
}

#[test]
fn presets_are_plans() {
    for preset in PRESETS {
        let target = PlanDraft { target: "http://host".into(), seed: "7".into(), ..PlanDraft::default() };
        let plan = RunPlan::try_from(preset.apply(&target)).unwrap();
        assert_eq!(plan.seed(), 7);
        let eta = eta::eta(&plan, Limits::default());
        assert!(0.0 < eta.low_s && eta.low_s < eta.high_s, "{}: {eta:?}", preset.key);
    }
    let standard = sample::reference().plan;
    let preset = super::presets::by_key("standard").unwrap().apply(&PlanDraft::from(standard.clone()));
    let preset = RunPlan::try_from(preset).unwrap();
    assert_eq!((preset.contexts(), preset.concurrency()), (standard.contexts(), standard.concurrency()));
}

#[test]
fn cells_that_cannot_run_take_no_time() {
    let of =
        |contexts| plan(&[(Field::PrefillContexts, "none"), (Field::Contexts, contexts), (Field::Concurrency, "1,2")]);
    let limits = Limits { max_model_len: Some(16 * 1_024), ..Limits::default() };
    let both = of("8K,64K");
    assert_eq!(eta::eta(&both, limits), eta::eta(&of("8K"), Limits::default()));
    assert!(eta::eta(&both, limits).high_s < eta::eta(&both, Limits::default()).high_s);

    let facts = TargetFacts { limits, ..TargetFacts::default() };
    let events = [
        RunEvent::RunStarted { plan: both, started_unix_ms: 1, tool: String::new() },
        RunEvent::Probed { facts: Box::new(facts), origin: Origin::Measured },
    ];
    let log: Vec<Envelope> =
        events.into_iter().zip(0..).map(|(event, seq)| Envelope { seq, at: Nanos(0), event }).collect();
    let left =
        |log| eta::remaining_secs(&RunState::fold("r".parse().unwrap(), log).unwrap().unwrap(), Nanos(0)).unwrap();
    assert!(left(&log[..2]) < left(&log[..1]) / 2.0, "{} of {}", left(&log[..2]), left(&log[..1]));
}

#[test]
fn what_remains_follows_what_the_cells_took() {
    let plan = plan(&[(Field::PrefillContexts, "none"), (Field::Contexts, "8K"), (Field::Concurrency, "1,2")]);
    let cells = plan.cells();
    let result = CellResult::not_drained(1.0, 0.0);
    let events = [
        RunEvent::RunStarted { plan, started_unix_ms: 1, tool: String::new() },
        RunEvent::CellStarted { cell: cells[0] },
        RunEvent::CellFinished { cell: cells[0], result: Box::new(result) },
        RunEvent::CellStarted { cell: cells[1] },
    ];
    let times = [0, 0, 72, 72].map(Nanos::from_secs);
    let log = events.into_iter().zip(times).zip(0..).map(|((event, at), seq)| Envelope { seq, at, event });
    let log: Vec<Envelope> = log.collect();
    let id: RunId = "r".parse().unwrap();
    let run = RunState::fold(id, &log).unwrap().unwrap();
    let left = |secs| eta::remaining_secs(&run, Nanos::from_secs(secs)).unwrap();
    assert!((70.0..75.0).contains(&left(72)), "{}", left(72));
    assert!((left(72) - left(100) - 28.0).abs() < 1e-6);
    assert!(left(10_000).abs() < 1e-9);
    assert_eq!(eta::remaining_secs(&sample::reference(), Nanos(0)), None);
}

#[test]
fn the_command_reads_as_people_write_it() {
    let plan = plan(&[(Field::Name, "it's -fast"), (Field::Model, "-m"), (Field::PrefillContexts, "1M")]);
    insta::assert_snapshot!(command(&plan), @r#"speedmatrix run --target http://127.0.0.1:8000 --model=-m --name 'it'\''s -fast' --contexts 8K,16K --concurrency 1,2 --prefill-contexts 1024K --duration 30s --max-output 4096 --prompts shared --load sustained --questions varied --temperature 1 --top-p server --end-of-text ignore --order rows --repeats 1 --client-check run --seed 0"#);
}

/// Splits a line as a POSIX shell does, as far as our quoting goes.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut inside, mut chars) = (Vec::new(), String::new(), false, line.chars());
    while let Some(c) = chars.next() {
        match c {
            '\'' => inside = !inside,
            '\\' if !inside => word.extend(chars.next()),
            ' ' if !inside => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

/// Reads flags as the command line does: `--flag value` or `--flag=value`.
fn from_command(line: &str) -> PlanDraft {
    let mut words = shell_words(line).into_iter().skip(2);
    let mut draft = PlanDraft::default();
    let names = draft.fields().map(|(field, _)| field);
    while let Some(word) = words.next() {
        let (flag, value) = word.split_once('=').map_or((word.clone(), None), |(f, v)| (f.into(), Some(v.to_owned())));
        let field = names.into_iter().find(|field| field.flag() == flag).unwrap();
        *draft.field_mut(field) = value.unwrap_or_else(|| words.next().unwrap());
    }
    draft
}

fn drafts() -> impl Strategy<Value = PlanDraft> {
    let sizes = prop::collection::vec(prop_oneof![Just("8K".to_owned()), "[1-9][0-9]{0,3}K?"], 1..4);
    let levels = prop::collection::vec((1_u32..=1_024).prop_map(|n| n.to_string()), 1..4);
    let prefill = prop_oneof![Just(String::new()), Just("none".into()), "[1-9][0-9]{0,3}K"];
    let duration = prop_oneof!["[1-9][0-9]?s", "[1-9][0-9]{2,4}ms", "[0-9]\\.[1-9]m", Just(String::new())];
    let path = "(/v1|/models|/completions|/chat|/a|/){0,4}";
    let texts = ("\\PC{0,12}", "[ -~\n\t']{0,12}");
    let prompts = prop_oneof![Just("shared"), Just("unique"), Just("mixed:7%"), Just("cold"), Just("")];
    let questions = prop_oneof![Just("identical"), Just("")];
    let order = prop_oneof![Just("rows"), Just("shuffled"), Just("interleaved"), Just("")];
    let repeats = prop_oneof![Just("3"), Just("2.5%"), Just("5,3%"), Just("")];
    let load = prop_oneof![Just("burst:9"), Just("mixed:2K"), Just("open:ramp"), Just("open"), Just("")];
    let slo = prop_oneof![Just("ttft:0.25s,e2e:1m"), Just("tpot:20ms"), Just("")];
    let corpus = prop_oneof![Just("my notes.txt"), Just("")];
    let temperature = prop_oneof![Just("0"), Just("0,75"), Just("server"), Just("")];
    let top_p = prop_oneof![Just("0.9"), Just("server"), Just("")];
    let end = prop_oneof![Just("stop"), Just("")];
    let min = prop_oneof![Just("64"), Just("")];
    let check = prop_oneof![Just("skip"), Just("")];
    let manner = ((prompts, questions, order, repeats, load), (slo, corpus, temperature, top_p, end, min, check));
    (sizes, levels, prefill, duration, path, texts, manner, any::<u64>()).prop_map(
        |(sizes, levels, prefill, duration, path, (model, name), manner, seed)| PlanDraft {
            target: format!("Host:8000{path}"),
            model,
            name,
            contexts: sizes.join(" "),
            concurrency: levels.join(","),
            leave_out: String::new(),
            prefill_contexts: prefill,
            duration,
            max_output: String::new(),
            prompts: manner.0.0.to_owned(),
            questions: manner.0.1.to_owned(),
            order: manner.0.2.to_owned(),
            repeats: manner.0.3.to_owned(),
            load: manner.0.4.to_owned(),
            slo: manner.1.0.to_owned(),
            corpus: manner.1.1.to_owned(),
            temperature: manner.1.2.to_owned(),
            top_p: manner.1.3.to_owned(),
            end_of_text: manner.1.4.to_owned(),
            min_output: manner.1.5.to_owned(),
            client_check: manner.1.6.to_owned(),
            seed: seed.to_string(),
        },
    )
}

proptest! {
    #[test]
    fn a_plan_written_and_read_is_the_same(draft in drafts()) {
        let plan = RunPlan::try_from(draft).unwrap();
        let written = PlanDraft::from(plan.clone());
        prop_assert_eq!(RunPlan::try_from(written.clone()), Ok(plan.clone()));
        let json = serde_json::to_string(&plan).unwrap();
        prop_assert_eq!(&serde_json::from_str::<RunPlan>(&json).unwrap(), &plan);
        prop_assert_eq!(from_command(&command(&plan)), written);
    }
}
