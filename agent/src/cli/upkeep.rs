//! `db`: the store's file, looked after.

use std::path::{Path, PathBuf};

use speedmatrix_shared::format;
use tokio::task::spawn_blocking;

use super::{
    CliError, Exit,
    args_of_db::{BackupArgs, DbArgs, DbCommand, PruneArgs},
};
use crate::{
    runs::unix_ms,
    store::{self, Access, Damage, Health, Prune, Shrunk, Store, StoreError},
    terminal::{Terminal, printable},
};

pub(super) async fn db(args: DbArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    match args.command {
        DbCommand::Check(store) => {
            let path = store.path()?;
            match off_the_runtime(move || store::check(&path)).await {
                Ok(health) => tell(&health, terminal),
                Err(CliError::Store(error @ StoreError::Damaged { .. })) => {
                    terminal.complain(&format!("{error}; {}", todo_of_file()));
                    Ok(Exit::SomeFailed)
                }
                Err(error) => Err(error),
            }
        }
        DbCommand::Vacuum(store) => {
            let path = store.path()?;
            let Shrunk { before, after } = off_the_runtime(move || store::vacuum(&path)).await?;
            terminal.line(&format!("{} before, {} after", bytes(before), bytes(after)))?;
            Ok(Exit::Done)
        }
        DbCommand::Backup(BackupArgs { file, store }) => {
            let path = store.path()?;
            let to = target(&path, file, unix_ms());
            let copy = to.clone();
            let health = off_the_runtime(move || store::backup(&path, &copy)).await?;
            terminal.line(&format!("copied to {}", to.display()))?;
            tell(&health, terminal)
        }
        DbCommand::Prune(args) => prune(args, terminal).await,
    }
}

async fn prune(args: PruneArgs, terminal: &mut Terminal) -> Result<Exit, CliError> {
    let path = args.store.path()?;
    if !path.exists() {
        return Err(StoreError::Missing { path }.into());
    }
    let store = Store::open(&path, Access::Measure).await?;
    let (what, word) = if args.dry_run { (Prune::Look, "would remove") } else { (Prune::Remove, "removed") };
    // What is gone has no line any more.
    let lines = store.list().await?;
    let pruned = store.prune(args.rule.retention(), unix_ms(), what).await?;
    for run in lines.iter().filter(|run| pruned.runs.contains(&run.id)) {
        terminal.line(&format!("{word}: {}", super::read::line(run)))?;
    }
    let (runs, without_raw) = (pruned.runs.len() as u64, pruned.without_raw.len() as u64);
    let (runs, without_raw) = (format::count(Some(runs)), format::count(Some(without_raw)));
    terminal.line(&format!(
        "{word}: {runs} runs, and {} of raw arrivals of {without_raw} other runs",
        bytes(pruned.raw_bytes)
    ))?;
    if what == Prune::Remove {
        terminal.hint("new runs take the room; `speedmatrix db vacuum` gives it back to the disk");
    }
    Ok(Exit::Done)
}

/// Works where no task waits for it.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, CliError> {
    let done = spawn_blocking(work).await.map_err(std::io::Error::other)?;
    Ok(done?)
}

/// Where a copy goes that was given a folder, or no name.
fn target(store: &Path, file: Option<PathBuf>, now_unix_ms: u64) -> PathBuf {
    let stem = store.file_stem().unwrap_or(store.as_os_str()).to_string_lossy();
    let time: String = format::wall_time(now_unix_ms).chars().filter(char::is_ascii_digit).collect();
    let name = format!("{stem}-{time}.sqlite3");
    match file {
        Some(folder) if folder.is_dir() => folder.join(name),
        Some(file) => file,
        None => store.with_file_name(name),
    }
}

fn tell(health: &Health, terminal: &mut Terminal) -> Result<Exit, CliError> {
    for line in words(health) {
        terminal.line(&line)?;
    }
    if health.damage.is_empty() {
        return Ok(Exit::Done);
    }
    for todo in todos(&health.damage) {
        terminal.complain(todo);
    }
    Ok(Exit::SomeFailed)
}

/// What a check found, a line for each thing that was checked and for each that is damaged.
fn words(health: &Health) -> Vec<String> {
    let Health { path, schema, bytes: size, runs, damage } = health;
    let mut lines =
        vec![format!("{}: schema {schema}, runs: {}, {}", path.display(), format::count(*runs), bytes(*size))];
    let (mut file, mut rows, mut records) = (Vec::new(), Vec::new(), Vec::new());
    for damage in damage {
        match damage {
            Damage::File(sentence) => file.push(format!("file and indexes damaged: {}", printable(sentence))),
            Damage::Orphans { table, rows: number } => {
                rows.push(format!("rows damaged: {} rows of {table} belong to no run", format::count(Some(*number))));
            }
            Damage::Run { run, detail } => {
                records.push(format!("run damaged: {}: {}", printable(run), printable(detail)));
            }
        }
    }
    let mut say = |found: Vec<String>, fine: &str| {
        if found.is_empty() { lines.push(fine.to_owned()) } else { lines.extend(found) }
    };
    say(file, "file and indexes: fine");
    if runs.is_some() {
        say(rows, "rows and what they belong to: fine");
        say(records, "runs: all fold from their events");
    }
    lines
}

/// What to do, once for each kind of damage.
fn todos(damage: &[Damage]) -> Vec<&'static str> {
    let has = |of: fn(&Damage) -> bool| damage.iter().any(of);
    let mut todos = Vec::new();
    if has(|damage| matches!(damage, Damage::File(_))) {
        todos.push(todo_of_file());
    }
    if has(|damage| matches!(damage, Damage::Run { .. })) {
        todos.push(
            "the other runs are not affected: take the damaged ones from a backup, or delete them on the page of the \
             agent",
        );
    }
    if has(|damage| matches!(damage, Damage::Orphans { .. })) {
        todos.push("rows that belong to no run are never shown: the runs are not affected, and nothing must be done");
    }
    todos
}

const fn todo_of_file() -> &'static str {
    "stop the agent, move the file away together with those beside it whose names begin with its name, and put a \
     backup in its place; `speedmatrix export RUN --store FILE` may still write single runs of the damaged one"
}

fn bytes(number: u64) -> String {
    format!("{} bytes", format::count(Some(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_without_a_name_is_named_by_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("runs.sqlite3");
        let check = |file: Option<PathBuf>, wanted: &str| {
            assert_eq!(target(&store, file, 1_767_225_600_000), folder.path().join(wanted));
        };
        check(None, "runs-202601010000.sqlite3");
        check(Some(folder.path().to_owned()), "runs-202601010000.sqlite3");
        check(Some(folder.path().join("copy.db")), "copy.db");
    }

    #[test]
    fn damage_is_told_with_what_to_do() {
        let damage = vec![
            Damage::File("Page 3: never used".into()),
            Damage::Orphans { table: "events".into(), rows: 1_234 },
            Damage::Run { run: "a".into(), detail: "event 4 came where 3 was due".into() },
            Damage::Run { run: "b\n".into(), detail: "it has no events".into() },
        ];
        let health = Health { path: "/s".into(), schema: 5, bytes: 40_960, runs: Some(2), damage };
        let said: Vec<String> =
            words(&health).into_iter().chain(todos(&health.damage).into_iter().map(str::to_owned)).collect();
        insta::assert_snapshot!(said.join("\n"), @"
        /s: schema 5, runs: 2, 40,960 bytes
        file and indexes damaged: Page 3: never used
        rows damaged: 1,234 rows of events belong to no run
        run damaged: a: event 4 came where 3 was due
        run damaged: b : it has no events
        stop the agent, move the file away together with those beside it whose names begin with its name, and put a backup in its place; `speedmatrix export RUN --store FILE` may still write single runs of the damaged one
        the other runs are not affected: take the damaged ones from a backup, or delete them on the page of the agent
        rows that belong to no run are never shown: the runs are not affected, and nothing must be done
        ");
        let fine = Health { damage: Vec::new(), ..health };
        insta::assert_snapshot!(words(&fine).join("\n"), @"
        /s: schema 5, runs: 2, 40,960 bytes
        file and indexes: fine
        rows and what they belong to: fine
        runs: all fold from their events
        ");
        assert!(todos(&fine.damage).is_empty());
    }
}
