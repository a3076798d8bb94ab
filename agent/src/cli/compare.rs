//! Runs against each other: `compare`, `gate` and `plan-repeats`. They work beside a serving agent and store nothing.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use speedmatrix_shared::{
    compare::{
        Comparison,
        export::{self, ComparisonFormat},
        gate::Gate,
        repeats::RepeatPlan,
    },
    format,
    id::RunId,
    import, sample,
    state::RunState,
};

use super::{
    CliError, Exit,
    args::StoreArgs,
    args_of_runs::{CompareArgs, GateArgs, MeasureArgs, PlanRepeatsArgs},
};
use crate::{
    store::{Access, Store},
    terminal::Terminal,
};

/// A run under the name that people gave it.
struct Named {
    run: RunState,
    title: Option<String>,
}

/// Where runs come from: files, the sample, and the store, which is opened when the first run asks for it.
pub(super) struct Source {
    path: StoreArgs,
    store: Option<Store>,
}

impl Source {
    /// Of the store at `path`.
    pub(super) const fn new(path: StoreArgs) -> Self {
        Self { path, store: None }
    }

    /// What is an id is a stored run, everything else a file: no id has a dot or a slash.
    async fn run(&mut self, named: &str) -> Result<Named, CliError> {
        let Ok(id) = named.parse::<RunId>() else { return run_of_file(Path::new(named)) };
        if id.as_str() == RunId::REFERENCE {
            return Ok(Named { run: sample::reference(), title: None });
        }
        let store = match self.store.take() {
            Some(store) => store,
            None => Store::open(&self.path.clone().path()?, Access::Read).await?,
        };
        let store = self.store.insert(store);
        Ok(Named { run: store.load(&id).await?, title: store.labels(&id).await?.title })
    }

    /// The comparison of two runs, under the names that people gave them.
    pub(super) async fn compared(&mut self, a: &str, b: &str, measure: &MeasureArgs) -> Result<Comparison, CliError> {
        let (a, b) = (self.run(a).await?, self.run(b).await?);
        let mut comparison = Comparison::of(&a.run, &b.run, measure.metric, measure.margin);
        for (side, named) in [(&mut comparison.a, a), (&mut comparison.b, b)] {
            side.title = named.title.unwrap_or_else(|| std::mem::take(&mut side.title));
        }
        Ok(comparison)
    }
}

fn run_of_file(path: &Path) -> Result<Named, CliError> {
    let unreadable = |source| CliError::Unread { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // One byte more than is read tells that there are too many.
    let most = import::MAX_BYTES as u64 + 1;
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    let runs = import::read(&bytes).map_err(|source| CliError::NoRun { path: path.to_owned(), source })?;
    // Of a file with several kinds of load the first is its own: the windows.
    let import = runs
        .into_iter()
        .next()
        .ok_or_else(|| CliError::NoRun { path: path.to_owned(), source: import::ImportError::Empty })?;
    Ok(Named { run: import.run, title: import.labels.title })
}

pub(super) async fn compare(args: CompareArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let comparison = Source::new(args.store).compared(&args.a, &args.b, &args.measure).await?;
    let text = export::render(&comparison, args.format);
    match args.output {
        Some(path) => write(path, &text)?,
        None => terminal.data(text.trim_end_matches(['\r', '\n']))?,
    }
    Ok(Exit::Done)
}

pub(super) async fn gate(args: GateArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let comparison = Source::new(args.store).compared(&args.baseline, &args.run, &args.measure).await?;
    let answer = Gate::of(&comparison, args.inconclusive);
    if let Some(path) = args.junit {
        write(path, &export::junit(&comparison, args.inconclusive))?;
    }
    if let Some(path) = args.markdown {
        write(path, &export::render(&comparison, ComparisonFormat::Markdown))?;
    }
    terminal.line(&format!("{}: {}", answer.label(), comparison.sentence()))?;
    for note in &comparison.notes {
        terminal.hint(note);
    }
    Ok(Exit::Gate(answer))
}

pub(super) async fn plan_repeats(args: PlanRepeatsArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let mut source = Source::new(args.store);
    let mut runs = Vec::new();
    for named in &args.runs {
        runs.push(source.run(named).await?.run);
    }
    let plan = RepeatPlan::of(&runs.iter().collect::<Vec<_>>(), args.metric, args.see).ok_or_else(|| {
        CliError::Usage("no cell of these runs was repeated: measure some with --repeats 3 first".into())
    })?;
    let (share, scatter) = (format::percent(Some(plan.share)), format::percent(Some(plan.spread.log_sd)));
    let needed = match plan.repeats {
        Some(repeats) => format!("{repeats} repeats on each side see a change of {share} in four of five tries"),
        None => format!("more than 1,000 repeats on each side would be needed to see a change of {share}"),
    };
    terminal.line(&format!("{needed}; repeats scatter by {scatter}"))?;
    Ok(Exit::Done)
}

/// Writes a report; the one of an earlier build makes place.
fn write(path: PathBuf, text: &str) -> Result<(), CliError> {
    let written =
        File::create(&path).and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|source| CliError::Report { path, source })
}
