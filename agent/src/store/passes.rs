//! Who may use the agent: passes, each known by the digest of its token.

use rusqlite::{Row, params};
use speedmatrix_shared::{
    api::{Pass, Role},
    id::RunId,
};

use super::{
    database::Database,
    error::{StoreError, explain},
    rows::whole,
};
use crate::secret::Digest;

/// Most passes that are kept, without those that have run out.
const MOST: usize = 1_000;

/// A pass with the digest of its token.
#[derive(Debug, Clone)]
pub struct KeptPass {
    /// The digest of its token.
    pub digest: Digest,
    /// What it allows.
    pub pass: Pass,
}

impl Database {
    /// All passes, the oldest first.
    pub(super) fn passes(&self) -> Result<Vec<KeptPass>, StoreError> {
        let sql = "SELECT number, digest, role, run, name, created_unix_ms, until_unix_ms FROM passes ORDER BY number";
        let read = |rows: &mut rusqlite::Statement<'_>| rows.query_map([], kept)?.collect::<rusqlite::Result<Vec<_>>>();
        let found = self.connection().prepare_cached(sql).and_then(|mut statement| read(&mut statement));
        // A row that says nothing that is understood allows nothing.
        found.map(|rows| rows.into_iter().flatten().collect()).map_err(|e| explain(self.path(), e))
    }

    /// Keeps a pass; its number is given here.
    pub(super) fn add_pass(&mut self, kept: &KeptPass, now_unix_ms: u64) -> Result<Pass, StoreError> {
        let KeptPass { digest, pass } = kept;
        self.change(|change| change.execute("DELETE FROM passes WHERE until_unix_ms < ?1", [whole(now_unix_ms)]))?;
        if self.passes()?.len() >= MOST {
            return Err(StoreError::TooManyPasses { most: MOST });
        }
        self.change(|change| {
            change.execute(
                "INSERT INTO passes (digest, role, run, name, created_unix_ms, until_unix_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    digest.0,
                    role_word(pass.role),
                    pass.run.as_ref().map(RunId::as_str),
                    pass.name,
                    whole(pass.created_unix_ms),
                    pass.until_unix_ms.map(whole)
                ],
            )?;
            let number = change.last_insert_rowid();
            Ok(Pass { number: u64::try_from(number).unwrap_or_default(), ..pass.clone() })
        })
    }

    /// Takes a pass back; whether there was one.
    pub(super) fn revoke_pass(&mut self, number: u64) -> Result<bool, StoreError> {
        self.change(|change| {
            change.execute("DELETE FROM passes WHERE number = ?1", [whole(number)]).map(|rows| rows > 0)
        })
    }
}

const fn role_word(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Operator => "operator",
    }
}

fn kept(row: &Row<'_>) -> rusqlite::Result<Option<KeptPass>> {
    let whole = |column: &str| row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or_default());
    let until: Option<i64> = row.get("until_unix_ms")?;
    let (role, run): (String, Option<String>) = (row.get("role")?, row.get("run")?);
    let role = match role.as_str() {
        "viewer" => Role::Viewer,
        "operator" => Role::Operator,
        _ => return Ok(None),
    };
    let Ok(run) = run.map(|run| run.parse()).transpose() else { return Ok(None) };
    let pass = Pass {
        number: whole("number")?,
        role,
        run,
        name: row.get("name")?,
        created_unix_ms: whole("created_unix_ms")?,
        until_unix_ms: until.map(|until| u64::try_from(until).unwrap_or_default()),
    };
    Ok(Some(KeptPass { digest: Digest(row.get("digest")?), pass }))
}
