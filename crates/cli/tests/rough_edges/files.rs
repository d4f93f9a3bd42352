//! Files that commands read and write (20 to 22), and pages that they take (24).

use super::Edges;
use crate::common::MODEL;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::process::{Command, Stdio};
use std::thread;

fn imported() -> (Edges, String) {
    let edges = Edges::new();
    let file = edges.path("house.ifc");
    fs::write(&file, MODEL).unwrap();
    edges.out(&["ifc", "import", &file, "thorp://alps/house"]);
    (edges, file)
}

/// 20: the result was renamed over whatever was there, also a device.
#[test]
fn edge_20_export_writes_into_what_is_no_regular_file() {
    let (edges, _) = imported();
    let pipe = edges.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let reads = {
        let pipe = pipe.clone();
        thread::spawn(move || {
            let mut text = String::new();
            File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
            text
        })
    };
    edges.out(&["ifc", "export", "thorp://alps/house", &pipe]);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert!(reads.join().unwrap().contains("IFCPERSON"));
    // A regular file is replaced, and a link to one stays a link.
    let (file, link) = (edges.path("out.ifc"), edges.path("link.ifc"));
    fs::write(&file, "before").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    edges.out(&["ifc", "export", "thorp://alps/house", &link]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().contains("IFCPERSON"));
}

/// 21: a file called `-` was made.
#[test]
fn edge_21_a_hyphen_is_standard_output_and_input() {
    let (edges, file) = imported();
    let mut command = edges.command(&["ifc", "export", "thorp://alps/house", "-"]);
    command.current_dir(edges.path(""));
    let said = thorp_testing::finish(command);
    assert!(
        said.code == 0 && said.out.contains("IFCPERSON"),
        "{}{}",
        said.out,
        said.err
    );
    assert!(!fs::exists(edges.path("-")).unwrap());
    let mut command = edges.command(&["ifc", "import", "-", "thorp://alps/again"]);
    command
        .stdin(File::open(file).unwrap())
        .stdout(Stdio::null());
    assert!(command.status().unwrap().success());
    assert!(edges.out(&["ls"]).contains("thorp://alps/again"));
}

/// 23: the loser of two imports left its objects, and did not say what to do.
#[test]
fn edge_23_the_loser_of_two_imports_leaves_no_object() {
    let edges = Edges::new();
    let file = edges.path("house.ifc");
    let person = |n: usize| format!("#{n}=IFCPERSON($,'Anna',$,$,$,$,$,$);\n");
    let many: String = (1..=3_000).map(person).collect();
    fs::write(
        &file,
        MODEL.replace("#1=IFCPERSON($,'Anna',$,$,$,$,$,$);\n", &many),
    )
    .unwrap();
    let objects = |segment: &str| {
        let said = edges.out(&["inspect", segment, "--json"]);
        let told: serde_json::Value = serde_json::from_str(&said).unwrap();
        told["objects"].as_u64().unwrap()
    };
    edges.out(&["ifc", "import", &file, "thorp://alps/alone"]);
    let alone = objects("thorp://alps/alone");
    // Until both have begun before one has ended.
    for n in 0..20 {
        let segment = format!("thorp://alps/house-{n}");
        let import = || {
            let command = edges.command(&["ifc", "import", &file, &segment]);
            thread::spawn(move || thorp_testing::finish(command))
        };
        let both = [import(), import()].map(|import| import.join().unwrap());
        let codes = both.each_ref().map(|said| said.code);
        assert!(codes.contains(&0), "{both:?}");
        assert_eq!(objects(&segment), alone, "{both:?}");
        if let Some(loser) = both.iter().find(|said| said.code != 0) {
            assert!(
                loser.err.contains("-> import into another segment"),
                "{}",
                loser.err
            );
            return;
        }
    }
    panic!("no import lost");
}

/// 22: *No such file*, of a segment.
#[test]
fn edge_22_swapped_arguments_are_wrong_usage() {
    let (edges, file) = imported();
    edges.fails(
        2,
        "swap the two",
        &["ifc", "import", "thorp://alps/x", &file],
    );
    edges.fails(
        2,
        "is not a name",
        &["ifc", "export", &file, "thorp://alps/house"],
    );
}

/// 24: each command was granted 32 pages, and kept them.
#[test]
fn edge_24_forty_objects_of_forty_commands_take_forty_pages() {
    let edges = Edges::new();
    for number in 0..40 {
        edges.out(&["put", "thorp://alps/many", "--text", &number.to_string()]);
    }
    let told = edges.out(&["ls", "thorp://alps/", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let many = told["segments"].as_array().unwrap().iter();
    let mut many = many.filter(|segment| segment["name"] == "thorp://alps/many");
    assert_eq!(many.next().unwrap()["pages"], 40);
}
