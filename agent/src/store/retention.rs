//! Rules of how long runs are kept. Pinned runs and running ones always are; the others go as if somebody had deleted them.

use rusqlite::{Row, Transaction, params};
use speedmatrix_shared::id::RunId;

use super::{database::Database, error::StoreError, labels, rows::whole};

/// Milliseconds in a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// What is kept, apart from pinned and running runs; `None`: all of it. A run's age counts from its start, an imported one's
/// from its import, as its file may say any time; what lies in the future counts as now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// How many runs, the newest.
    pub runs: Option<u64>,
    /// How long a run is kept, days.
    pub days: Option<u64>,
    /// How long raw arrivals are kept, days: without them a run's numbers stay and can't be computed again.
    pub raw_days: Option<u64>,
}

impl Retention {
    /// Whether everything is kept.
    pub fn keeps_all(&self) -> bool {
        *self == Self::default()
    }
}

/// What is done with runs that a rule no longer keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prune {
    /// Nothing: they are only named.
    Look,
    /// They are hidden, for [`super::Store::remove_deleted`]. Raw arrivals go at once.
    Hide,
    /// They are removed for good.
    Remove,
}

/// What a rule no longer keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Runs, the newest first.
    pub runs: Vec<RunId>,
    /// Runs that stay without their raw arrivals.
    pub without_raw: Vec<RunId>,
    /// Bytes of these raw arrivals.
    pub raw_bytes: u64,
}

/// A run that may be pruned.
#[derive(Debug)]
struct Old {
    id: RunId,
    since_unix_ms: u64,
    raw_bytes: u64,
}

impl Database {
    pub(super) fn prune(&mut self, rule: Retention, now_unix_ms: u64, what: Prune) -> Result<Pruned, StoreError> {
        if rule.keeps_all() {
            return Ok(Pruned::default());
        }
        self.change(|change| {
            let pruned = chosen(old_runs(change, now_unix_ms)?, rule, now_unix_ms);
            if what == Prune::Look {
                return Ok(pruned);
            }
            for run in &pruned.without_raw {
                change.prepare_cached("DELETE FROM raw WHERE run = ?1")?.execute([run.as_str()])?;
            }
            for run in &pruned.runs {
                match what {
                    Prune::Remove => labels::remove(change, run.as_str())?,
                    Prune::Hide | Prune::Look => hide(change, run, now_unix_ms)?,
                }
            }
            Ok(pruned)
        })
    }
}

/// Runs that are over and not pinned, the newest first.
fn old_runs(change: &Transaction<'_>, now_unix_ms: u64) -> rusqlite::Result<Vec<Old>> {
    let sql = "SELECT id, started_unix_ms, labels.json, \
               (SELECT coalesce(sum(length(bytes)), 0) FROM raw WHERE raw.run = runs.id) \
               FROM runs LEFT JOIN labels ON labels.run = id \
               WHERE deleted_unix_ms IS NULL AND (ended = 1 OR damage IS NOT NULL)";
    let read = |row: &Row<'_>| {
        let (id, started): (String, i64) = (row.get(0)?, row.get(1)?);
        let labels = row.get::<_, Option<String>>(2)?.as_deref().map(labels::read).unwrap_or_default();
        let raw_bytes: i64 = row.get(3)?;
        let imported = labels.imported.map(|note| note.at_unix_ms);
        let since_unix_ms = imported.unwrap_or_else(|| u64::try_from(started).unwrap_or_default()).min(now_unix_ms);
        let raw_bytes = u64::try_from(raw_bytes).unwrap_or_default();
        // A name that is none is not shown, and left alone.
        let id = id.parse::<RunId>().ok().filter(|_| !labels.pinned);
        Ok(id.map(|id| Old { id, since_unix_ms, raw_bytes }))
    };
    let mut statement = change.prepare_cached(sql)?;
    let rows = statement.query_map([], read)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut runs: Vec<Old> = rows.into_iter().flatten().collect();
    runs.sort_by(|a, b| (b.since_unix_ms, &b.id).cmp(&(a.since_unix_ms, &a.id)));
    Ok(runs)
}

/// What a rule no longer keeps of these, the newest first.
fn chosen(runs: Vec<Old>, rule: Retention, now_unix_ms: u64) -> Pruned {
    let is_older = |run: &Old, days: Option<u64>| {
        days.is_some_and(|days| now_unix_ms.saturating_sub(run.since_unix_ms) > days.saturating_mul(DAY_MS))
    };
    let mut pruned = Pruned::default();
    for (place, run) in (0..).zip(runs) {
        if rule.runs.is_some_and(|runs| place >= runs) || is_older(&run, rule.days) {
            pruned.runs.push(run.id);
        } else if run.raw_bytes > 0 && is_older(&run, rule.raw_days) {
            pruned.raw_bytes += run.raw_bytes;
            pruned.without_raw.push(run.id);
        }
    }
    pruned
}

fn hide(change: &Transaction<'_>, run: &RunId, at_unix_ms: u64) -> rusqlite::Result<()> {
    change
        .prepare_cached(
            "INSERT INTO labels (run, json, deleted_unix_ms) VALUES (?1, '{}', ?2) \
             ON CONFLICT (run) DO UPDATE SET deleted_unix_ms = excluded.deleted_unix_ms",
        )?
        .execute(params![run.as_str(), whole(at_unix_ms)])
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_chooses_what_it_no_longer_keeps() {
        let check = |rule: Retention, wanted: &str| {
            let ages = [("a", 0, 7), ("b", 5, 7), ("c", 10, 0), ("d", 30, 7)];
            let runs = ages.map(|(id, days, raw_bytes)| {
                let since_unix_ms = (100 - days) * DAY_MS;
                Old { id: id.parse().unwrap(), since_unix_ms, raw_bytes }
            });
            let Pruned { runs, without_raw, raw_bytes } = chosen(runs.into(), rule, 100 * DAY_MS);
            let names = |runs: &[RunId]| runs.iter().map(RunId::as_str).collect::<String>();
            assert_eq!(format!("{} {} {raw_bytes}", names(&runs), names(&without_raw)), wanted, "{rule:?}");
        };
        let all = Retention::default();
        check(all, "  0");
        check(Retention { runs: Some(3), ..all }, "d  0");
        check(Retention { runs: Some(0), ..all }, "abcd  0");
        check(Retention { days: Some(10), ..all }, "d  0");
        check(Retention { days: Some(9), ..all }, "cd  0");
        check(Retention { days: Some(u64::MAX), ..all }, "  0");
        check(Retention { raw_days: Some(4), ..all }, " bd 14");
        check(Retention { runs: Some(3), days: Some(20), raw_days: Some(0) }, "d b 7");
    }
}
