//! `thorp web setup`: makes a database ready for a keeper, and takes it back.

use super::source::{recipe, refused, runtime, source};
use crate::commands::{say, say_json};
use crate::failure::{Code, Failure};
use crate::text;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use thorp_web::{Plan, SetUp, Step};

/// What `thorp web setup` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// The database, with a URL of a superuser of it, as postgresql:///shop of the user postgres
    #[arg(long, value_name = "URL")]
    postgres: String,
    /// Also give tables what the keys of this recipe need: a file, or the name of a recipe that comes with Thorp
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
    /// What publication, slot and standby are called
    #[arg(long, value_name = "NAME", default_value = "thorp")]
    name: String,
    /// The role of the keeper, which is made if it is not there [default: the name]
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Do it. Without this, nothing is changed
    #[arg(long)]
    apply: bool,
    /// Take back what set-up has made
    #[arg(long)]
    undo: bool,
    /// Tell it in JSON
    #[arg(long)]
    json: bool,
}

/// Prints what it would do, or does it.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let source = source(&options.postgres, &options.name)?;
    let recipe = options.recipe.as_deref().map(recipe).transpose()?;
    let role = options.role.as_ref().unwrap_or(&options.name);
    if role.is_empty() || role.contains(['"', '\0']) {
        let what = format!("{role:?} is no name of a role");
        return Err(Failure::new(what, "use letters, digits and _").with(Code::Usage));
    }
    runtime()?.block_on(async {
        let set_up = SetUp::of(&source, role).await.map_err(refused)?;
        let plan = match options.undo {
            true => set_up.plan_undo().await,
            false => set_up.plan(recipe.as_ref()).await,
        };
        let plan = plan.map_err(refused)?;
        if !options.json {
            tell(&plan, options)?;
        }
        if options.apply {
            set_up.apply(&plan).await.map_err(refused)?;
        }
        match options.json {
            true => say_json(&document(&plan, options)),
            false => say(last_line(&plan, options)),
        }
    })
}

/// The plan as SQL, with what it is good for as comments.
fn tell(plan: &Plan, options: &Options) -> Result<(), Failure> {
    lines(plan, options.undo)
        .iter()
        .try_for_each(|line| say(line))
}

fn lines(plan: &Plan, undo: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if !plan.steps.is_empty() {
        // Whoever runs it by hand must not call what the owner of the database has made.
        lines.push(String::from("SET search_path = pg_catalog;"));
    }
    for Step { what, sql, .. } in &plan.steps {
        lines.push(comment(what));
        lines.extend(sql.iter().map(|sql| format!("{sql};")));
    }
    let by_hand = plan.by_hand.iter();
    lines.extend(by_hand.map(|line| comment(&format!("then by hand: {line}"))));
    if !undo {
        let not_captured = plan.not_captured.iter();
        lines.extend(
            not_captured.map(|(kind, name)| comment(&format!("not captured: {kind} {name}"))),
        );
    }
    lines
}

/// A comment of SQL. A name in it may have a line's end.
fn comment(text: &str) -> String {
    format!("-- {}", text::name(text))
}

fn last_line(plan: &Plan, options: &Options) -> &'static str {
    match (plan.steps.is_empty(), options.apply) {
        (true, _) => "-- nothing is to be done",
        (false, true) => "-- done",
        (false, false) => "-- nothing was changed: --apply does it",
    }
}

fn document(plan: &Plan, options: &Options) -> Value {
    let step = |step: &Step| json!({ "what": step.what, "sql": step.sql });
    let steps: Vec<Value> = plan.steps.iter().map(step).collect();
    let kind = |(kind, name): &(String, String)| json!({ "kind": kind, "name": name });
    let not_captured: Vec<Value> = plan.not_captured.iter().map(kind).collect();
    json!({
        "name": options.name,
        "undo": options.undo,
        "applied": options.apply,
        "steps": steps,
        "by_hand": plan.by_hand,
        "not_captured": not_captured,
    })
}

const HELP: &str = "\
It prints the statements, and changes nothing without --apply. It can run again: it does what is \
missing. What it lists as not captured changes without the cache's knowledge: no route may rest on \
that. Run it as a superuser of the database, as with `sudo -u postgres`. Before --undo stop all \
proxies, then a keeper of your own, and then the watchdog.

Examples:
  thorp web setup --postgres postgresql:///shop --recipe shop.toml
  thorp web setup --postgres postgresql:///shop --recipe shop.toml --apply
  thorp web setup --postgres postgresql:///shop --undo --apply";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_lines_end_stays_in_its_comment() {
        let mut plan = Plan::default();
        let name = String::from("x\nALTER ROLE evil SUPERUSER; --\u{1b}[2K");
        plan.not_captured.push((String::from("sequence"), name));
        let expected = "-- not captured: sequence x?ALTER ROLE evil SUPERUSER; --?[2K";
        assert_eq!(lines(&plan, false), [expected]);
    }
}
