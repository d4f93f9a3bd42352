//! The page of a proxy's operator. It has no script: the browser is told to run none.

use super::address::encoded;
use super::document::{
    Audited, DropLine, EntryLine, HomeLine, ProxyStatus, SourceKind, UpdateLine,
};
use super::html::Html;
use super::moment;
use crate::status::Status;
use std::collections::BTreeMap;

/// Entries that the page shows, and dropped ones.
pub(super) const SHOWN_MAX: usize = 200;

/// A longer text is cut.
const TEXT_BYTES_MAX: usize = 400;

/// The form of the page.
pub(super) const STYLE: &str = include_str!("page.css");

/// The whole page. It shows only what contains the text that the operator looks for.
pub(super) fn page(
    status: &ProxyStatus,
    find: &str,
    (entries, dropped): (&[EntryLine], &[DropLine]),
) -> String {
    let mut page = Html::default();
    page.tags(HEAD);
    summary(&mut page, status);
    if let Some(keeper) = &status.keeper {
        of_keeper(&mut page, keeper, status);
    }
    of_homes(&mut page, &status.homes);
    of_audit(&mut page, &status.audit);
    form(&mut page, find);
    of_entries(&mut page, entries);
    of_dropped(&mut page, dropped);
    page.tags("</main></body></html>\n");
    page.done()
}

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>thorp web</title>\
<meta name=\"viewport\" content=\"width=device-width\"><link rel=\"stylesheet\" href=\"/style.css\"></head>\
<body><main><h1>thorp web</h1>\n";

fn summary(page: &mut Html, status: &ProxyStatus) {
    let live = match (status.has_routes, status.live) {
        (true, true) => "live: answers of routes are kept",
        (true, false) => "away: all requests of routes go to the origin",
        (false, _) => "There are no routes: answers are kept as the origin says",
    };
    page.tags("<p id=\"health\">").text(live).tags("</p>\n");
    if let Some(error) = &status.reloads.error {
        page.tags("<p class=\"problem\" id=\"reload\">The last reload was refused: ");
        page.text(cut(error)).tags("</p>\n");
    }
    page.tags("<table id=\"figures\"><tbody>");
    let all: u64 = status.missed.values().sum();
    let rows: [(&str, u64); 11] = [
        ("answers of routes stored", status.entries.count as u64),
        ("bytes of these", status.entries.bytes),
        ("bytes of these at most", status.entries.bytes_max),
        (
            "addresses without a route stored",
            status.others.count as u64,
        ),
        ("bytes of these", status.others.bytes),
        ("bytes of these at most", status.others.bytes_max),
        ("hits of routes", status.hits),
        ("misses of routes", all),
        ("of these joined", status.joined),
        ("dropped because of a change", status.dropped),
        ("runs, in seconds", status.uptime_s),
    ];
    for (name, value) in rows {
        row(page, name, value);
    }
    page.tags("<tr><th>origin</th>")
        .cell(&status.origins.join(", "))
        .tags("</tr>");
    page.tags("</tbody></table>\n");
    reasons(page, "Misses", &status.missed);
    reasons(page, "Past the cache", &status.bypassed);
    reasons(page, "Not stored", &status.refused);
    reasons(page, "Unsafe requests", &status.updated);
}

fn row(page: &mut Html, name: &str, value: u64) {
    page.tags("<tr><th>")
        .text(name)
        .tags("</th>")
        .number(value)
        .tags("</tr>");
}

/// The reasons that were met.
fn reasons(page: &mut Html, title: &str, counts: &BTreeMap<String, u64>) {
    let met = || counts.iter().filter(|(_, count)| **count > 0);
    if met().next().is_none() {
        return;
    }
    page.tags("<h2>").text(title).tags("</h2><table><tbody>");
    met().for_each(|(reason, count)| row(page, reason, *count));
    page.tags("</tbody></table>\n");
}

fn of_keeper(page: &mut Html, keeper: &Status, status: &ProxyStatus) {
    page.tags("<h2>Keeper</h2><p id=\"keeper\">")
        .text(&keeper.name)
        .text(match keeper.live {
            true => ": live",
            false => ": away. ",
        });
    page.text(keeper.why.as_deref().map_or("", cut))
        .tags("</p><table><tbody>");
    let average_us = keeper
        .waited_us
        .checked_div(keeper.waits)
        .unwrap_or_default();
    let (updates, have_waited) = match status.source {
        SourceKind::Requests => ("unsafe requests", "unsafe requests that have waited"),
        _ => ("commits", "commits that have waited"),
    };
    for (name, value) in [
        (updates, keeper.commits),
        ("of these ended all answers", keeper.unknown),
        ("did not wait for it", keeper.not_waited),
        ("open updates", keeper.open_updates as u64),
        (have_waited, keeper.waits),
        ("average wait, in microseconds", average_us),
        ("longest wait, in microseconds", keeper.waited_us_max),
        ("changes of keys", status.key_changes),
    ] {
        row(page, name, value);
    }
    page.tags("</tbody></table>\n");
    if status.keys.is_empty() {
        return;
    }
    page.tags("<h2>Keys that change most</h2><table id=\"keys\"><thead><tr><th>key</th><th>changes</th></tr></thead><tbody>");
    for line in &status.keys {
        page.tags("<tr>")
            .cell(cut(&line.key))
            .number(line.changes)
            .tags("</tr>");
    }
    page.tags("</tbody></table>\n");
}

fn of_homes(page: &mut Html, homes: &[HomeLine]) {
    if homes.is_empty() {
        return;
    }
    page.tags(
        "<h2>Homes</h2><table id=\"homes\"><thead><tr><th>home</th><th>is</th></tr></thead><tbody>",
    );
    for home in homes {
        let is = if home.live { "live" } else { "away" };
        page.tags("<tr>").cell(&home.name).cell(is).tags("</tr>");
    }
    page.tags("</tbody></table>\n");
}

fn of_audit(page: &mut Html, audit: &Audited) {
    let found = [
        audit.same,
        audit.different,
        audit.changed,
        audit.failed,
        audit.skipped,
    ];
    if audit.share == "0%" && found == [0; 5] {
        return;
    }
    page.tags("<h2>Audit</h2><p>").text(&audit.share);
    page.tags(" of the hits are compared with the origin</p><table id=\"audit\"><tbody>");
    let names = [
        "same",
        "different",
        "changed meanwhile",
        "failed",
        "skipped",
    ];
    for (name, count) in names.into_iter().zip(found) {
        row(page, name, count);
    }
    page.tags("</tbody></table>\n");
    if audit.differences.is_empty() {
        return;
    }
    page.tags("<table id=\"differences\"><thead><tr><th>address</th><th>at</th><th>what differs</th></tr></thead><tbody>");
    for line in &audit.differences {
        page.tags("<tr>")
            .cell(cut(&line.address))
            .cell(&moment::words(line.at_unix_ms));
        page.cell(cut(&line.what)).tags("</tr>");
    }
    page.tags("</tbody></table>\n");
}

fn form(page: &mut Html, find: &str) {
    page.tags("<form action=\"/\" method=\"get\"><label>Host and path contain <input name=\"find\" value=\"");
    page.text(find)
        .tags("\"></label> <button>Find</button></form>\n");
}

fn of_entries(page: &mut Html, entries: &[EntryLine]) {
    page.tags("<h2>Stored</h2><table id=\"entries\"><thead><tr><th>address</th><th>varies by</th><th>status</th>\
<th>hits</th><th>bytes</th><th>rests on</th><th>now</th></tr></thead><tbody>\n");
    for entry in entries {
        page.tags("<tr>");
        address(page, &entry.host, &entry.path);
        page.cell(cut(&entry.variant))
            .number(u64::from(entry.status));
        page.number(entry.hits).number(entry.bytes);
        page.cell(cut(&entry.dependencies.join(", ")));
        page.tags("<td>");
        match &entry.reason {
            None => page.text("would be served"),
            Some(reason) => page.text("would not be served: ").text(reason),
        };
        cause(page, entry.key.as_deref(), entry.update.as_ref());
        page.tags("</td></tr>\n");
    }
    page.tags("</tbody></table>\n");
}

fn of_dropped(page: &mut Html, dropped: &[DropLine]) {
    page.tags("<h2>Dropped lately</h2><table id=\"dropped\"><thead><tr><th>address</th><th>varied by</th><th>at</th>\
<th>hits</th><th>why</th></tr></thead><tbody>\n");
    for line in dropped {
        page.tags("<tr>");
        address(page, &line.host, &line.path);
        page.cell(cut(&line.variant))
            .cell(&moment::words(line.at_unix_ms))
            .number(line.hits);
        page.tags("<td>").text(&line.reason);
        cause(page, line.key.as_deref(), line.update.as_ref());
        page.tags("</td></tr>\n");
    }
    page.tags("</tbody></table>\n");
}

/// The address of an answer, as a link to what is known of it alone.
fn address(page: &mut Html, host: &str, path: &str) {
    let shown = format!("{host}{path}");
    page.tags("<td><a href=\"/?find=")
        .text(&encoded(cut(&shown)))
        .tags("\"><bdi>");
    page.text(cut(&shown)).tags("</bdi></a></td>");
}

/// Which update of which key it was.
fn cause(page: &mut Html, key: Option<&str>, update: Option<&UpdateLine>) {
    if let Some(key) = key {
        page.tags(" <code><bdi>")
            .text(cut(key))
            .tags("</bdi></code>");
    }
    let Some(update) = update else {
        return;
    };
    page.text(&format!(" by {}", update.cause));
    if let Some(at_unix_ms) = update.at_unix_ms {
        page.text(&format!(", {}", moment::words(at_unix_ms)));
    }
}

/// Text that is not too long for a table.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
