//! The tables of a live database, as far as set-up and check look at them.

use super::error::PostgresError;
use crate::recipe::{Recipe, Table};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::{Client, Row};

/// Something in the database that has a name and rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Relation {
    /// As in a recipe: `schema.name`, without quotes.
    pub(super) name: String,
    /// As in a statement.
    pub(super) quoted: String,
    pub(super) kind: Kind,
    /// The table of which it is a part, or its own name.
    pub(super) root: String,
    pub(super) columns: BTreeSet<String>,
    /// Those of which values that are equal have several texts, and the stream may have another one than the address: `citext`, a collation
    /// that is not deterministic, a domain over `character(n)`.
    pub(super) loose: BTreeSet<String>,
    /// All columns of an old row are in the log.
    is_full: bool,
    /// The columns of an old row that are in the log.
    identity: BTreeSet<String>,
    /// What a statement says after REPLICA IDENTITY to have it as it is.
    pub(super) identity_sql: String,
}

/// What PostgreSQL decodes, and what not (trap W14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Table,
    View,
    Sequence,
    Unlogged,
    Foreign,
    MaterializedView,
}

impl Kind {
    fn of(kind: &str, persistence: &str) -> Self {
        match (kind, persistence) {
            ("S", _) => Kind::Sequence,
            ("f", _) => Kind::Foreign,
            ("m", _) => Kind::MaterializedView,
            ("v", _) => Kind::View,
            (_, "u") => Kind::Unlogged,
            _ => Kind::Table,
        }
    }

    /// What it is called.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Table => "table",
            Kind::View => "view",
            Kind::Sequence => "sequence",
            Kind::Unlogged => "unlogged table",
            Kind::Foreign => "foreign table",
            Kind::MaterializedView => "materialized view",
        }
    }

    /// Whether its changes are not in the stream. A view has no rows of its own.
    pub(super) fn is_not_captured(self) -> bool {
        !matches!(self, Kind::Table | Kind::View)
    }
}

impl Relation {
    fn of(row: &Row) -> Self {
        let index: Option<String> = row.get(8);
        let identity: &str = row.get(5);
        let identity_sql = match (identity, index) {
            ("f", _) => String::from("FULL"),
            ("n", _) => String::from("NOTHING"),
            ("i", Some(index)) => format!("USING INDEX {index}"),
            _ => String::from("DEFAULT"),
        };
        let texts = |at| row.get::<_, Vec<String>>(at).into_iter().collect();
        Relation {
            name: row.get(0),
            quoted: row.get(1),
            kind: Kind::of(row.get(2), row.get(3)),
            root: row.get(4),
            is_full: identity == "f",
            columns: texts(6),
            identity: texts(7),
            loose: texts(9),
            identity_sql,
        }
    }

    /// Whether old rows lack what is needed: to be published at all, or to name the keys of a recipe (traps W13, W15).
    pub(super) fn needs_full(&self, recipe: Option<&Recipe>) -> bool {
        if self.kind != Kind::Table || self.is_full {
            return false;
        }
        let rule = recipe.and_then(|recipe| recipe.table(&self.root));
        let keys = match rule {
            Some(Table::Keys(keys)) => keys.as_slice(),
            _ => &[],
        };
        let mut holes = keys.iter().flat_map(|key| key.holes());
        self.identity.is_empty() || !holes.all(|hole| self.identity.contains(hole))
    }
}

/// All relations of the database but PostgreSQL's own, and those of this schema, by their names.
pub(super) async fn relations(
    client: &Client,
    without: &str,
) -> Result<BTreeMap<String, Relation>, PostgresError> {
    let question = "
        SELECT space.nspname || '.' || class.relname, format('%I.%I', space.nspname, class.relname),
            class.relkind::text, class.relpersistence::text,
            (SELECT above_space.nspname || '.' || above.relname FROM pg_class AS above
                JOIN pg_namespace AS above_space ON above_space.oid = above.relnamespace
                WHERE above.oid = coalesce(pg_partition_root(class.oid), class.oid)),
            class.relreplident::text,
            ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped),
            ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = class.oid AND attnum = ANY (index.indkey)),
            quote_ident(index_class.relname),
            ARRAY(SELECT attname::text FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
                JOIN pg_proc AS output ON output.oid = typoutput LEFT JOIN pg_collation ON pg_collation.oid = attcollation
                WHERE attrelid = class.oid AND attnum > 0 AND NOT attisdropped AND (output.proname = 'citextout'
                    OR output.proname = 'bpcharout' AND typname <> 'bpchar' OR NOT collisdeterministic))
        FROM pg_class AS class
        JOIN pg_namespace AS space ON space.oid = class.relnamespace
        LEFT JOIN pg_index AS index ON index.indrelid = class.oid
            AND CASE class.relreplident WHEN 'd' THEN index.indisprimary WHEN 'i' THEN index.indisreplident ELSE false END
        LEFT JOIN pg_class AS index_class ON index_class.oid = index.indexrelid
        WHERE class.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND class.relpersistence <> 't'
            AND space.nspname NOT IN ('pg_catalog', 'information_schema', $1) AND space.nspname !~ '^pg_'
        ORDER BY 1";
    let rows = client.query(question, &[&without]).await?;
    let relations = rows.iter().map(Relation::of);
    Ok(relations
        .map(|relation| (relation.name.clone(), relation))
        .collect())
}

/// The table of which this one is a part, if it is a part of one. None: it is not there, or not yet. It waits for no lock of a table.
pub(super) async fn root(
    client: &Client,
    id: u32,
) -> Result<Option<Option<String>>, PostgresError> {
    let question = "SELECT space.nspname || '.' || root.relname
        FROM pg_class AS class LEFT JOIN pg_class AS root ON root.oid = pg_partition_root(class.oid)
        LEFT JOIN pg_namespace AS space ON space.oid = root.relnamespace WHERE class.oid = $1";
    let row = client.query_opt(question, &[&id]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// Whether a publication has all changes of all tables. One that has partitions as their roots does not say that a partition is emptied.
/// None: there is none.
pub(super) async fn publishes_all(
    client: &Client,
    name: &str,
) -> Result<Option<bool>, PostgresError> {
    let question = "SELECT puballtables AND pubinsert AND pubupdate AND pubdelete AND pubtruncate AND NOT pubviaroot
        FROM pg_publication WHERE pubname = $1";
    let row = client.query_opt(question, &[&name]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// The schema of what set-up makes for a keeper of this name.
pub(super) fn schema_of(name: &str) -> String {
    format!("{name}_web")
}

/// What the stream does not have: kind and name (trap W14).
pub(super) async fn not_captured(
    client: &Client,
    relations: &BTreeMap<String, Relation>,
) -> Result<Vec<(String, String)>, PostgresError> {
    let found = relations.values().filter(|it| it.kind.is_not_captured());
    let found = found.map(|it| (it.kind.word().to_owned(), it.name.clone()));
    let mut found: Vec<(String, String)> = found.collect();
    let question = "SELECT count(*) FROM pg_largeobject_metadata";
    let count: i64 = client.query_one(question, &[]).await?.get(0);
    if count > 0 {
        found.push((String::from("large objects"), count.to_string()));
    }
    Ok(found)
}
