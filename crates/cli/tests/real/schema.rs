//! Documents held against the committed schema.

use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../schema/plimsoll.run-1.schema.json");

pub fn check(document: &Value) {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    if let Err(why) = meets(&schema, document, &schema, "$") {
        panic!("{why}");
    }
}

/// The words of JSON schema that ours uses; others are an error, so that none passes unnoticed.
fn meets(schema: &Value, value: &Value, root: &Value, at: &str) -> Result<(), String> {
    for (word, rule) in schema.as_object().ok_or_else(|| format!("{at}: no schema"))? {
        let list = || rule.as_array().into_iter().flatten();
        let fine = match word.as_str() {
            "$schema" | "title" | "description" | "$defs" | "format" => true,
            "$ref" => {
                let path = rule.as_str().unwrap_or_default().trim_start_matches('#');
                meets(root.pointer(path).unwrap(), value, root, at)?;
                true
            }
            "const" => rule == value,
            "type" if rule.is_array() => list().any(|name| is_a(name, value)),
            "type" => is_a(rule, value),
            "minimum" => value.as_f64() >= rule.as_f64() || !value.is_number(),
            "maximum" => value.as_f64() <= rule.as_f64() || !value.is_number(),
            "oneOf" => list().filter(|one| meets(one, value, root, at).is_ok()).count() == 1,
            "anyOf" => list().any(|one| meets(one, value, root, at).is_ok()),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    meets(rule, item, root, &format!("{at}[{index}]"))?;
                }
                true
            }
            "properties" => {
                for (name, inner) in rule.as_object().into_iter().flatten() {
                    if let Some(found) = value.get(name) {
                        meets(inner, found, root, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "required" => list().all(|name| value.get(name.as_str().unwrap_or_default()).is_some()),
            other => return Err(format!("{at}: `{other}` is not known here")),
        };
        if !fine {
            return Err(format!("{at}: {value} does not meet {word} {rule}"));
        }
    }
    Ok(())
}

fn is_a(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[test]
fn the_check_can_say_no() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let wrong = serde_json::json!({"schema": "plimsoll.run/1", "cells": [{}]});
    assert!(meets(&schema, &wrong, &schema, "$").is_err());
}
