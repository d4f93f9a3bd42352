//! The schemas of documents in `docs/schema`, and whether a document is as its schema says.
//!
//! They are JSON Schema (draft 2020-12). This reads the few keywords that they use, and panics at any other one.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of the schemas.
pub(crate) fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// A schema, and the file that it stands in.
#[derive(Clone)]
pub(crate) struct Schema {
    file: Value,
    here: Value,
}

impl Schema {
    /// That of a file, as `rights-show`.
    pub(crate) fn named(name: &str) -> Self {
        let path = dir().join(format!("{name}.json"));
        let text = fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Schema::of(serde_json::from_str(&text).unwrap())
    }

    pub(crate) fn of(file: Value) -> Self {
        Schema {
            here: file.clone(),
            file,
        }
    }

    fn at(&self, here: &Value) -> Self {
        Schema {
            file: self.file.clone(),
            here: here.clone(),
        }
    }

    /// What is wrong with a document, and where.
    pub(crate) fn check(&self, document: &Value) -> Result<(), String> {
        self.check_at(document, "$")
    }

    fn check_at(&self, value: &Value, at: &str) -> Result<(), String> {
        for (keyword, given) in self.here.as_object().unwrap() {
            match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" => {}
                // These are read with `properties`.
                "required" | "additionalProperties" => {}
                "$ref" => self.referred(given.as_str().unwrap()).check_at(value, at)?,
                "type" => check_type(given, value, at)?,
                "enum" => check_enum(given, value, at)?,
                "anyOf" => self.check_any(given, value, at)?,
                "items" => self.check_items(given, value, at)?,
                "properties" => self.check_object(value, at)?,
                other => panic!("{other} is a keyword that is not known here"),
            }
        }
        // A map by names has no properties of its own.
        match self.here.get("properties") {
            None => self.check_object(value, at),
            Some(_) => Ok(()),
        }
    }

    fn referred(&self, to: &str) -> Schema {
        match to.strip_prefix('#') {
            Some(pointer) => self.at(self.file.pointer(pointer).unwrap()),
            None => Schema::named(to.strip_suffix(".json").unwrap()),
        }
    }

    fn check_any(&self, schemas: &Value, value: &Value, at: &str) -> Result<(), String> {
        let mut wrong = Vec::new();
        for schema in schemas.as_array().unwrap() {
            match self.at(schema).check_at(value, at) {
                Ok(()) => return Ok(()),
                Err(why) => wrong.push(why),
            }
        }
        Err(format!("{at} is none of these: {}", wrong.join("; ")))
    }

    fn check_items(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let mut items = value.as_array().into_iter().flatten().enumerate();
        let schema = self.at(schema);
        items.try_for_each(|(index, item)| schema.check_at(item, &format!("{at}[{index}]")))
    }

    fn check_object(&self, value: &Value, at: &str) -> Result<(), String> {
        let Some(object) = value.as_object() else {
            return Ok(());
        };
        for key in self.here["required"].as_array().into_iter().flatten() {
            let key = key.as_str().unwrap();
            if !object.contains_key(key) {
                return Err(format!("{at} lacks {key}"));
            }
        }
        for (key, member) in object {
            let known = &self.here["properties"][key];
            let schema = match known.is_null() {
                false => known,
                true => &self.here["additionalProperties"],
            };
            match schema {
                Value::Bool(false) => return Err(format!("{at} has {key}, too")),
                Value::Null => {}
                schema => self.at(schema).check_at(member, &format!("{at}.{key}"))?,
            }
        }
        Ok(())
    }
}

fn check_type(types: &Value, value: &Value, at: &str) -> Result<(), String> {
    let is_of = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    let is_good = match types {
        Value::Array(types) => types.iter().any(is_of),
        name => is_of(name),
    };
    is_good
        .then_some(())
        .ok_or_else(|| format!("{at} is {value}, which is no {types}"))
}

fn check_enum(words: &Value, value: &Value, at: &str) -> Result<(), String> {
    let is_one = words.as_array().unwrap().contains(value);
    is_one
        .then_some(())
        .ok_or_else(|| format!("{at} is {value}, which is none of {words}"))
}
