//! The STEP reader and writer on small files, good and bad.

use thorp_workloads::step::{
    Body, Entity, EntityId, NESTING_MAX, Order, Param, Reader, Reason, StepError, StepFile, Stored,
    parse, restore, write,
};

const HEADER: &str = "ISO-10303-21;\nHEADER;\nFILE_DESCRIPTION((''),'2;1');\nFILE_NAME('n','',(''),(''),'','','');\n\
                      FILE_SCHEMA(('IFC4'));\nENDSEC;\n";

fn with_data(data: &str) -> String {
    format!("{HEADER}DATA;\n{data}\nENDSEC;\nEND-ISO-10303-21;\n")
}

fn read(text: &str) -> StepFile {
    parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn written(file: &StepFile) -> String {
    String::from_utf8(written_bytes(file)).expect("the text of this test is UTF-8")
}

fn written_bytes(file: &StepFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(file, &mut bytes).expect("memory takes what is written");
    bytes
}

fn fault(text: &str) -> StepError {
    parse(text.as_bytes()).expect_err(text)
}

#[test]
fn all_kinds_of_parameters_are_read_and_written_as_spelled() {
    let data = "#12=IFCTHING('it''s \\X2\\00E4\\X0\\',#5,$,*,.ENUM.,(1.,-2.50E-03,+7),IFCLABEL('x'),\"0F3\",(),((#5),(#12)));\n\
                #5=(A()B(1.,$));";
    let file = read(&with_data(data));
    assert_eq!(written(&file), with_data(data));
    let params = &file.entities[0].body.as_simple().unwrap().params;
    assert_eq!(params[0].as_text().unwrap().decode(), "it's ä");
    assert_eq!(params[1], Param::Reference(EntityId(5)));
    assert_eq!(params[5].as_list().unwrap()[1].as_number(), Some(-0.0025));
    assert_eq!(params[7], Param::Binary("0F3".into()));
    assert_eq!(file.entities[1].body.records().len(), 2);
    assert_eq!(file.header.len(), 3);
    assert_eq!(file.id_max(), EntityId(12));
}

#[test]
fn blanks_and_comments_may_stand_anywhere() {
    let loose = format!(
        "/* c */{}",
        with_data("/*a*/ #1 /*b*/ =\r\n IFCA\t( /* ; ' */ 1 ,\n( 2. , 'a /* no comment */ ;' ) ) /**/ ; /***/").replace("DATA;", "DATA /*x*/ ;")
    );
    assert_eq!(
        written(&read(&loose)),
        with_data("#1=IFCA(1,(2.,'a /* no comment */ ;'));")
    );
}

#[test]
fn strings_in_a_local_code_page_come_out_as_they_went_in() {
    let mut bytes = with_data("#1=IFCA('caf?');").into_bytes();
    let place = bytes.iter().position(|&byte| byte == b'?').unwrap();
    bytes[place] = 0xe9;
    let file = parse(&bytes).unwrap();
    assert_eq!(written_bytes(&file), bytes);
}

#[test]
fn data_sections_are_joined_and_parameters_of_one_are_kept() {
    let two = with_data("#1=A(#2);\nENDSEC;\nDATA;\n#2=B();");
    assert_eq!(written(&read(&two)), with_data("#1=A(#2);\n#2=B();"));
    let named = with_data("#1=A();").replace("DATA;", "DATA('one',('IFC4'));");
    assert_eq!(written(&read(&named)), named);
    let both = named.replace("#1=A();", "#1=A();\nENDSEC;\nDATA('two',('IFC4'));");
    assert!(matches!(fault(&both).reason, Reason::Unsupported(_)));
}

#[test]
fn an_empty_data_section_and_small_letters_are_read() {
    assert!(
        read(&format!("{HEADER}DATA;ENDSEC;END-ISO-10303-21;"))
            .entities
            .is_empty()
    );
    assert_eq!(
        read(&with_data("#1=IfcWall(.t.,1.e5);")).entities[0]
            .body
            .keyword(),
        "IfcWall"
    );
    assert!(
        read(&format!("\u{feff}{}", with_data("#1=A();"))).entities[0]
            .body
            .is("a")
    );
}

#[test]
fn malformed_data_is_refused_with_its_reason() {
    let cases: &[(&str, Reason)] = &[
        ("#1=A('x);", Reason::UnterminatedString),
        ("#1=A(1); /* x", Reason::UnterminatedComment),
        ("#1=A(\"0F);", Reason::UnterminatedBinary),
        ("#1=A(1)\n#2=B(2);", Reason::MissingSemicolon),
        ("#1=A(1);#1=B(2);", Reason::DuplicateId(EntityId(1))),
        ("#1=A('#98',#99);", Reason::DanglingReference(EntityId(99))),
        ("#0=A();", Reason::BadId),
        ("#99999999999999999999=A();", Reason::BadId),
        ("#=A();", Reason::Expected("the digits of an entity number")),
        ("#1=A(1.2.3);", Reason::BadNumber),
        ("#1=A(--1);", Reason::BadNumber),
        ("#1=A(\u{1});", Reason::GarbageByte(1)),
        ("#1=A('\0');", Reason::GarbageByte(0)),
        ("#1=A(ü);", Reason::GarbageByte(0xc3)),
        (
            "#1=A(1 2);",
            Reason::Expected("a comma or closing parenthesis"),
        ),
        ("#1=A(,);", Reason::Expected("a parameter")),
        ("#1=A(1,);", Reason::Expected("a parameter")),
        ("#1=();", Reason::Expected("a type in the complex entity")),
        ("#1 A();", Reason::Expected("an equals sign")),
        ("#1=;", Reason::Expected("a keyword")),
        ("#1=A(.5);", Reason::Expected("an enumeration")),
        ("#1=A(B());", Reason::Expected("a parameter")),
        ("#1=A(B(1,2));", Reason::Expected("a closing parenthesis")),
        ("hello", Reason::Expected("an entity or ENDSEC")),
    ];
    for (data, reason) in cases {
        assert_eq!(&fault(&with_data(data)).reason, reason, "{data}");
    }
}

#[test]
fn malformed_frames_are_refused_with_their_reason() {
    let good = with_data("#1=A(1);");
    let cases = [
        (String::new(), Reason::EmptyFile),
        (" \n/* nothing */\n".into(), Reason::EmptyFile),
        ("PK\u{3}\u{4}".into(), Reason::NotStep),
        (
            good.replace("ISO-10303-21;\nHEADER", "ISO-10303-21\nHEADER"),
            Reason::MissingSemicolon,
        ),
        (good.replace("HEADER;", ""), Reason::MissingHeader),
        (
            good.replacen("ENDSEC;\nDATA", "DATA", 1),
            Reason::MissingEndsec,
        ),
        (good.replace("DATA;", ""), Reason::MissingData),
        (
            good.replace("DATA;", "ANCHOR;"),
            Reason::Unsupported("an ANCHOR or REFERENCE section"),
        ),
        (good.replace("ENDSEC;\nEND", "END"), Reason::MissingEndsec),
        (good.replace("END-ISO-10303-21;", ""), Reason::Truncated),
        (
            good.replace("END-ISO-10303-21;", "END;"),
            Reason::MissingEndMarker,
        ),
        (format!("{good}#2=A();"), Reason::TrailingData),
        (
            good.replace("('IFC4')", "(#1)"),
            Reason::Unsupported("a reference in the header"),
        ),
    ];
    for (text, reason) in cases {
        assert_eq!(fault(&text).reason, reason, "{text}");
    }
}

#[test]
fn every_truncation_is_refused() {
    let good = with_data("#1=IFCA('x',(1.5,.T.),\"0\",B(#1));\n#2=(A()B($,*));");
    let end = good.trim_end().len();
    for length in 0..end {
        assert!(
            parse(&good.as_bytes()[..length]).is_err(),
            "{}",
            &good[..length]
        );
    }
}

#[test]
fn errors_name_line_and_column() {
    let error = fault(&with_data("#1=A(1);\n  #2=A('#9', /* #9 */ #9);"));
    assert_eq!((error.line, error.column), (9, 23));
    assert_eq!(
        error.to_string(),
        "line 9, column 23: #9 is referenced but nowhere defined"
    );
    let error = fault(&with_data("#1=A(1);\n #1=A();"));
    assert_eq!((error.line, error.column), (9, 2));
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| {
        with_data(&format!(
            "#1=A({}1{});",
            "(".repeat(depth),
            ")".repeat(depth)
        ))
    };
    let typed = |depth: usize| {
        with_data(&format!(
            "#1=A({}1{});",
            "T(".repeat(depth),
            ")".repeat(depth)
        ))
    };
    let file = read(&nested(NESTING_MAX));
    assert_eq!(written(&file), nested(NESTING_MAX));
    let stored = postcard::to_allocvec(&file.entities[0].body).unwrap();
    assert_eq!(
        postcard::from_bytes::<Body>(&stored).unwrap(),
        file.entities[0].body
    );
    for text in [
        nested(NESTING_MAX + 1),
        typed(NESTING_MAX + 1),
        nested(1_000_000),
        typed(1_000_000),
    ] {
        assert_eq!(fault(&text).reason, Reason::NestingTooDeep);
    }
}

#[test]
fn the_reader_gives_one_entity_at_a_time() {
    let text = with_data("#1=A(#2);\n#2=B();");
    let mut reader = Reader::new(text.as_bytes()).unwrap();
    assert!(reader.header()[2].is("FILE_SCHEMA"));
    assert_eq!(reader.next_entity().unwrap().unwrap().id, EntityId(1));
    assert!(!reader.is_defined(EntityId(2)));
    assert_eq!(reader.next_entity().unwrap().unwrap().id, EntityId(2));
    assert!(reader.is_defined(EntityId(2)));
    assert_eq!(reader.next_entity().unwrap(), None);
    assert_eq!(reader.next_entity().unwrap(), None);
}

#[test]
fn stored_entities_find_back_to_their_places() {
    let file = read(&with_data("#30=A(#2);\n#2=(B()C((#30,T(#2))));\n#17=D();"));
    let mut stored: Vec<Stored<EntityId>> = file.stored().collect();
    stored.reverse();
    assert_eq!(
        restore(file.header.clone(), file.data.clone(), stored.clone()).unwrap(),
        file
    );

    let added = read(&with_data("#31=E();")).entities.remove(0);
    stored.insert(
        0,
        Stored {
            id: added.id,
            order: Order::Added,
            body: added.body,
        },
    );
    let with_added = restore(file.header.clone(), Vec::new(), stored.clone()).unwrap();
    assert_eq!(
        with_added
            .entities
            .iter()
            .map(|entity| entity.id.0)
            .collect::<Vec<_>>(),
        [30, 2, 17, 31]
    );

    stored.push(stored[0].clone());
    let twice = restore(Vec::new(), Vec::new(), stored.clone()).unwrap_err();
    assert_eq!(twice.reason, Reason::DuplicateId(EntityId(31)));
    stored.retain(|entity| entity.id != EntityId(30));
    stored.dedup();
    stored.pop();
    let dangling = restore(Vec::new(), Vec::new(), stored).unwrap_err();
    assert_eq!(dangling.reason, Reason::DanglingReference(EntityId(30)));
}

#[test]
fn references_can_be_mapped_and_mapped_back() {
    let file = read(&with_data(
        "#1=A(#2,(#3,T(#1)),$);\n#2=(B(#3)C());\n#3=D();",
    ));
    for entity in &file.entities {
        let named = entity
            .body
            .clone()
            .map_refs(&mut |id| format!("home/{}", id.0));
        let bytes = postcard::to_allocvec(&named).unwrap();
        let read: Body<String> = postcard::from_bytes(&bytes).unwrap();
        let back = read
            .try_map_refs(&mut |name| name["home/".len()..].parse().map(EntityId))
            .unwrap();
        assert_eq!(back, entity.body);
    }
    let failing: Result<Entity<()>, &str> =
        file.entities[0].clone().try_map_refs(&mut |_| Err("gone"));
    assert_eq!(failing.unwrap_err(), "gone");
    assert_eq!(
        file.entities[0].body.references(),
        [&EntityId(2), &EntityId(3), &EntityId(1)]
    );
}

#[test]
fn damaged_stored_values_are_refused_or_can_be_written() {
    let file = read(&with_data(
        "#1=A(#1,('x',1.5,-3),T(.E.),\"0F\",$,*);\n#2=(B(#1)C());",
    ));
    for entity in &file.entities {
        let good = postcard::to_allocvec(&entity.body).unwrap();
        for place in 0..good.len() {
            for value in 0..=u8::MAX {
                let mut bad = good.clone();
                bad[place] = value;
                let Ok(body) = postcard::from_bytes::<Body>(&bad) else {
                    continue;
                };
                let body = body.map_refs(&mut |_| EntityId(1));
                let file = StepFile {
                    entities: vec![Entity {
                        id: EntityId(1),
                        body,
                    }],
                    ..read(&with_data(""))
                };
                assert_eq!(
                    parse(&written_bytes(&file)).as_ref(),
                    Ok(&file),
                    "{place} {value}"
                );
            }
        }
    }
}
