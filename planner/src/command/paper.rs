//! `thorp plan paper`: what the models make of the papers' own parameters.

use crate::command::failure::Failure;
use crate::command::print::{note, say, say_json};
use crate::command::shown::{make_directory, pictures, write};
use crate::report::{Report, Section, markdown, page};
use clap::Args;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What `thorp plan paper` is told.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Where planning/ goes, with a page for each paper, and its charts in charts/planning; without it the text is printed
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Where traces/ is, for what is replayed; what is missing there is left out
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Print all of it as JSON, as the answers of the other questions
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Examples:
  thorp plan paper | head -20
  thorp plan paper --out pages";

/// Computes everything.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    // What cannot be read or written later is told before anything is computed.
    if let Some(data) = &options.data {
        fs::read_dir(data).map_err(|error| Failure::file(data, &error))?;
    }
    if let Some(directory) = &options.out {
        make_directory(&directory.join(CHARTS))?;
        make_directory(&directory.join(PAGES))?;
    }
    let chapters = computed(options.data.as_deref(), |what| {
        // Whether anybody reads how far it is does not matter.
        let _ = note(what);
    });
    warn_of_what_is_left_out(&chapters);
    let written = match &options.out {
        Some(directory) => Some(write_all(directory, &chapters)?),
        None => None,
    };
    let report = together(chapters);
    if let Some((_, charts)) = &written {
        pictures(&report, charts)?;
    }
    match written {
        _ if options.json => say_json(&report),
        Some((pages, charts)) => say(&format!("{} and {}", pages.display(), charts.display())),
        None => say(markdown(&report, CHARTS).trim_end()),
    }
}

/// Writes a page for each paper. Where they are, and where their charts go.
fn write_all(directory: &Path, chapters: &[Chapter]) -> Result<(PathBuf, PathBuf), Failure> {
    let pages = directory.join(PAGES);
    for paper in PAPERS {
        write(&pages.join(paper.file), &paper.page(chapters))?;
    }
    Ok((pages, directory.join(CHARTS)))
}

/// A paper that models come from, and the page of what they make of it.
#[derive(Clone, Copy)]
struct Paper {
    file: &'static str,
    head: &'static str,
}

impl Paper {
    fn page(self, chapters: &[Chapter]) -> String {
        let own = chapters
            .iter()
            .filter(|chapter| chapter.paper.file == self.file);
        let report = Report {
            answer: self.head.to_owned(),
            sections: own.map(|chapter| chapter.section.clone()).collect(),
            assumptions: Vec::new(),
        };
        page(&report, CHARTS_OF_PAGES)
    }
}

/// A section, and the paper on whose page it stands.
struct Chapter {
    paper: Paper,
    section: Section,
}

/// Some sections that are computed at once.
struct Part {
    /// Said when it begins. Empty: it belongs to the part before it.
    name: &'static str,
    paper: Paper,
    sections: fn(Option<&Path>) -> Vec<Section>,
}

fn computed(data: Option<&Path>, begins: impl Fn(&str)) -> Vec<Chapter> {
    let mut chapters = Vec::new();
    for part in PARTS {
        if !part.name.is_empty() {
            begins(part.name);
        }
        let paper = part.paper;
        let sections = (part.sections)(data).into_iter();
        chapters.extend(sections.map(|section| Chapter { paper, section }));
    }
    chapters
}

/// All of them in one report.
fn together(chapters: Vec<Chapter>) -> Report {
    let sections = chapters.into_iter().map(|chapter| chapter.section);
    Report {
        answer: HEAD.to_owned(),
        sections: sections.collect(),
        assumptions: Vec::new(),
    }
}

/// Chapters that lack the same are told together.
fn warn_of_what_is_left_out(chapters: &[Chapter]) {
    let mut left_out: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Chapter { section, .. } in chapters {
        if let Some(why) = section.why_left_out() {
            left_out.entry(why).or_default().push(&section.heading);
        }
    }
    for (why, headings) in left_out {
        let headings = headings.join("; ");
        // The page says it, too.
        let _ = note(&format!(
            "warning: left out: {headings}\n  {why}\n  -> name a directory with --data in which traces/ holds them"
        ));
    }
}

const HEAD: &str = "# Planning\n\nWhat the models behind `thorp plan` make of the parameters of the papers that they come from, beside what these say. `make planning` writes a page for each paper into `docs/planning`.";

const PAGES: &str = "planning";

const CHARTS: &str = "charts/planning";

/// From a page.
const CHARTS_OF_PAGES: &str = "../charts/planning";

const BUDDY_CACHE: Paper = Paper {
    file: "buddycache.md",
    head: "# BuddyCache\n\nThe model behind `thorp plan site` computes the figures of its paper here, beside the values that the paper prints: M. E. Bjornsson and L. Shrira, *BuddyCache: High-Performance Object Storage for Collaborative Strong-Consistency Applications in a WAN*.\n\n`make planning` writes this page anew. [Planning](../planning.md) says which question to ask.",
};

const SERVER_LOAD: Paper = Paper {
    file: "server-load.md",
    head: "# Server load in global memory\n\nThe models behind `thorp plan memory` and `thorp plan replay` compute the figures of their paper here, beside the values that the paper prints: *Managing Server Load in Global Memory Systems* (1997).\n\nThe paper is read as chapter 3 of G. M. Voelker's thesis *Cooperative Caching in Local-Area and Wide-Area Networks* (2000), which is based on it. Sections, tables and figures have the numbers of the thesis. Policies that the paper builds on are in section 2.1 there.\n\n`make planning` writes this page anew. [Planning](../planning.md) says which question to ask.",
};

const PREFETCHING: Paper = Paper {
    file: "cooperative-prefetching.md",
    head: "# Cooperative prefetching\n\nThe model behind `thorp plan prefetch` computes the figures of its paper here, beside the values that the paper prints: *Implementing Cooperative Prefetching and Caching in a Globally-Managed Memory System* (1998).\n\nThe paper is read as chapter 4 of G. M. Voelker's thesis *Cooperative Caching in Local-Area and Wide-Area Networks* (2000), which is based on it. Sections, tables and figures have the numbers of the thesis. Policies that the paper builds on are in section 2.3.1 there.\n\n`make planning` writes this page anew. [Planning](../planning.md) says which question to ask.",
};

const WEB_CACHING: Paper = Paper {
    file: "web-proxy-caching.md",
    head: "# Cooperative Web proxy caching\n\nThe model behind `thorp plan web` computes the figures of its paper here, beside the values that the paper prints: *On the scale and performance of cooperative Web proxy caching* (1999).\n\nThe paper is read as chapter 5 of G. M. Voelker's thesis *Cooperative Caching in Local-Area and Wide-Area Networks* (2000), which is based in part on it. Sections, tables and figures have the numbers of the thesis.\n\n`make planning` writes this page anew. [Planning](../planning.md) says which question to ask.",
};

const PAPERS: [Paper; 4] = [BUDDY_CACHE, WEB_CACHING, SERVER_LOAD, PREFETCHING];

const PARTS: [Part; 6] = [
    Part {
        name: "sites (BuddyCache, section 6)",
        paper: BUDDY_CACHE,
        sections: |_| crate::site::paper(),
    },
    Part {
        name: "web caches (thesis, chapter 5)",
        paper: WEB_CACHING,
        sections: |_| crate::web::paper(),
    },
    Part {
        name: "memory servers (thesis, chapter 3)",
        paper: SERVER_LOAD,
        sections: |_| crate::memory::paper(),
    },
    Part {
        name: "prefetching (thesis, chapter 4)",
        paper: PREFETCHING,
        sections: |_| crate::prefetch::paper(),
    },
    Part {
        name: "replayed traces (thesis, sections 2.1, 3.4.3 and 3.6)",
        paper: SERVER_LOAD,
        sections: crate::replay::paper,
    },
    Part {
        name: "",
        paper: PREFETCHING,
        sections: crate::prefetch::paper_of_traces,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::svg;
    use crate::test_data::{TRACES, test_data};
    use std::collections::BTreeSet;

    fn docs() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
    }

    fn files_of(directory: &Path) -> BTreeSet<String> {
        let files = fs::read_dir(directory).expect("the project's pages");
        let name = |file: fs::DirEntry| file.file_name().to_string_lossy().into_owned();
        files.map(|file| name(file.expect("a file"))).collect()
    }

    #[test]
    fn the_pages_and_charts_of_the_project_are_what_the_command_writes() {
        let part = "the part of command::paper::tests::the_pages_and_charts_… that replays";
        let data = test_data(part, TRACES);
        let chapters = computed(data.as_deref(), |_| {});
        let page_of = |paper: Paper| {
            fs::read_to_string(docs().join(PAGES).join(paper.file)).expect("the page")
        };
        // Without traces some chapters are left out. The others are compared one by one.
        let is_computed = |chapter: &&Chapter| chapter.section.why_left_out().is_none();
        for Chapter { paper, section } in chapters.iter().filter(is_computed) {
            let report = Report {
                sections: vec![section.clone()],
                ..Report::default()
            };
            let is_there = page_of(*paper).contains(&page(&report, CHARTS_OF_PAGES));
            let (file, heading) = (paper.file, &section.heading);
            assert!(is_there, "{file}: {heading}: run `make planning`");
        }
        let is_whole = data.is_some();
        for paper in PAPERS.iter().filter(|_| is_whole) {
            let is_same = page_of(*paper) == paper.page(&chapters);
            assert!(is_same, "{}: run `make planning`", paper.file);
        }
        let mut charts = BTreeSet::new();
        for chart in chapters.iter().flat_map(|chapter| &chapter.section.charts) {
            let name = format!("{}.svg", chart.name);
            let there = fs::read_to_string(docs().join(CHARTS).join(&name)).expect("the chart");
            assert!(there == svg(chart), "{name}: run `make planning`");
            charts.insert(name);
        }
        let pages: BTreeSet<String> = PAPERS.map(|paper| paper.file.to_owned()).into();
        assert_eq!(files_of(&docs().join(PAGES)), pages);
        let drawn = files_of(&docs().join(CHARTS));
        assert!(
            charts.is_subset(&drawn) && (!is_whole || charts == drawn),
            "{drawn:?}"
        );
    }

    #[test]
    fn the_page_that_says_what_to_ask_links_the_page_of_each_paper() {
        let planning = fs::read_to_string(docs().join("planning.md")).expect("the page");
        for paper in PAPERS {
            let link = format!("]({PAGES}/{})", paper.file);
            assert!(planning.contains(&link), "{link}");
        }
    }
}
