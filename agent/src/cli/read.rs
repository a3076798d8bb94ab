//! What looks at stored runs: `runs` and `export`. They work beside a serving agent and write nothing.

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
};

use directories::ProjectDirs;
use speedmatrix_shared::{
    api::RunSummary,
    event::{Origin, RunOutcome},
    export::{ExportFormat, file_stem, render_labelled},
    format,
    id::RunId,
    label::Labels,
    sample,
    state::RunStatus,
};

use super::{
    CliError, Exit,
    args::StoreArgs,
    args_of_runs::{ExportArgs, RunsArgs},
};
use crate::{
    store::{Access, Store},
    terminal::{Terminal, printable},
};

/// Most files of one name that a folder gets.
const MAX_FILES: usize = 1_000;

impl StoreArgs {
    /// The file that was named, or the default one.
    pub(super) fn path(self) -> Result<PathBuf, CliError> {
        if let Some(path) = self.store {
            return Ok(path);
        }
        let folders = ProjectDirs::from("", "", "speedmatrix");
        let folders = folders.ok_or_else(|| {
            CliError::Usage("this user has no home folder to keep runs in: name a file with --store PATH".into())
        })?;
        Ok(folders.data_dir().join("runs.sqlite3"))
    }
}

pub(super) async fn list(args: RunsArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let store = Store::open(&args.store.path()?, Access::Read).await?;
    let runs = store.list().await?;
    if runs.is_empty() {
        terminal.hint(&format!("no runs in {} yet: `speedmatrix run` makes one", store.path().display()));
    }
    for run in &runs {
        if args.json {
            terminal.data(&serde_json::to_string(run).map_err(std::io::Error::from)?)?;
        } else {
            terminal.line(&line(run))?;
        }
    }
    Ok(Exit::Done)
}

/// One run in one line, its id first.
pub(super) fn line(run: &RunSummary) -> String {
    let status = run.status.word();
    let simulated = if matches!(run.origin, Some(Origin::Simulated { .. })) { "simulated: " } else { "" };
    let best = match run.headline.best_total_tok_s {
        Some(_) => format!("  best {} tok/s", format::rate(run.headline.best_total_tok_s)),
        None => String::new(),
    };
    // A name is foreign text: it must not break the line or speak to the terminal.
    let title = printable(run.name());
    let reason = match &run.status {
        RunStatus::Ended { outcome: RunOutcome::Failed { reason } } => format!("  ({})", printable(reason)),
        _ => String::new(),
    };
    let (started, done, cells) = (format::wall_time(run.started_unix_ms), run.cells_done, run.cells);
    format!("{}  {started}  {status:<11}  {done}/{cells} cells  {simulated}{title}{best}{reason}", run.id)
}

pub(super) async fn export(args: ExportArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let id: RunId = args.run.parse().map_err(|e| CliError::Usage(format!("{e}")))?;
    let (run, labels) = if id.as_str() == RunId::REFERENCE {
        (sample::reference(), Labels::default())
    } else {
        let store = Store::open(&args.store.path()?, Access::Read).await?;
        (store.load(&id).await?, store.labels(&id).await?)
    };
    let text = render_labelled(&run, &labels, args.format);
    let Some(path) = args.output else {
        terminal.data(text.trim_end_matches('\n'))?;
        return Ok(Exit::Done);
    };
    let names = if path.is_dir() { in_folder(&path, &file_stem(&run, &labels), args.format) } else { vec![path] };
    let (path, mut file) = create_first_free(&names)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|source| CliError::File { path: path.clone(), source })?;
    terminal.hint(&format!("written to {}", path.display()));
    Ok(Exit::Done)
}

/// Names for a file in a folder, the best first: `STEM.md`, `STEM-2.md`, …
fn in_folder(folder: &Path, stem: &str, format: ExportFormat) -> Vec<PathBuf> {
    let name = |number: usize| match number {
        1 => format!("{stem}.{}", format.extension()),
        number => format!("{stem}-{number}.{}", format.extension()),
    };
    (1..=MAX_FILES).map(|number| folder.join(name(number))).collect()
}

/// Creates the first of these files that is not there yet; two programs never get the same one.
fn create_first_free(paths: &[PathBuf]) -> Result<(PathBuf, File), CliError> {
    let mut taken = None;
    for path in paths {
        match File::create_new(path) {
            Ok(file) => return Ok((path.clone(), file)),
            Err(source) => {
                let is_taken = source.kind() == std::io::ErrorKind::AlreadyExists;
                taken = Some(CliError::File { path: path.clone(), source });
                if !is_taken {
                    break;
                }
            }
        }
    }
    Err(taken.unwrap_or_else(|| CliError::Usage("no name for the file to write: give one with --output".into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_one_line() {
        let reference = line(&speedmatrix_shared::facts::summary(&sample::reference()));
        assert!(reference.starts_with("reference  "), "{reference}");
        assert!(!reference.contains('\n'));
    }
}
