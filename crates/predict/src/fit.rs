//! A drive's values from runs that were made on it.

use array::{ArrayDesign, Component, Fill, FitError, FittedValue, LoadError, Model, fit_drive};
use explain::view::View;
use finding::{Code, Finding, Number, Question, Section, Value};
use record::TargetKind;
use serde::Serialize;
use units::Bytes;

use crate::failure::FitFailure;
use crate::measured::{ComparedCell, compared, errors, ids, missed, seen};

/// A drive fitted to what was measured on it.
#[derive(Clone, Debug, Serialize)]
pub struct DriveFit {
    schema: &'static str,
    /// The array that it began from.
    pub array: String,
    /// Its drive.
    pub drive: String,
    /// What was measured.
    pub runs: Vec<String>,
    /// The drive's values that the cells tell, and what they are now.
    pub values: Vec<(FittedValue, String)>,
    /// Cells measured and predicted by the fitted drive.
    pub cells: Vec<ComparedCell>,
    /// What half of the cells are off by at most, as a share of what was measured.
    pub median_error: f64,
    /// What nine of ten cells are off by at most.
    pub p90_error: f64,
    /// The text of the part.
    pub part: String,
    /// What there is to say.
    pub answer: Section,
}

/// Fits the drive of a design to runs on one such drive.
///
/// * `name`: the array's, as it was named.
/// * `cache`: whether there was room in the controllers' write caches.
///
/// # Errors
///
/// The cells do not tell the drive's values.
pub fn fit(
    name: &str,
    design: &ArrayDesign,
    views: &[View<'_>],
    cache: Fill,
) -> Result<DriveFit, FitFailure> {
    let runs = ids(views);
    let mut design = design.clone();
    // What a file takes of its drive says nothing of the drive.
    let mut targets = views.iter().map(|view| &view.run.header.target);
    if let Some(device) = targets.find(|target| target.kind == TargetKind::BlockDevice) {
        design = design.of_size(Bytes::new(device.size_bytes), &runs.join(", "));
    }
    let (cells, left_out) = seen(views, cache)?;
    let only: Vec<_> = cells.iter().map(|cell| cell.measured).collect();
    let mut found = match fit_drive(&design, &only) {
        Err(FitError::Undetermined) => return Err(elsewhere(design, cells)?),
        found => found?,
    };
    for value in &found.values {
        found.design.cite(&value.name, &runs.join(", "));
    }
    let cells = compared(&Model::new(found.design.clone()), cells)?;
    let [median_error, p90_error] = errors(&cells);
    let drive = design.drive.name.clone();
    let mut findings = vec![
        Finding::new(Code::PredictFitted)
            .with("values", found.values.len())
            .with("drive", Value::name(&drive))
            .with("measured", cells.len())
            .with("runs", Value::words(finding::numbers::list(&runs)))
            .with("median", Number::share(median_error))
            .with("most", Number::share(p90_error)),
    ];
    findings.extend((design.drives() > 1).then(|| {
        Finding::new(Code::PredictFittedOfMany)
            .with("array", Value::words(name))
            .with("drives", u64::from(design.drives()))
    }));
    let vague = found.values.iter().filter(|value| value.is_vague());
    let vague: Vec<String> = vague.map(|value| value.name.key.to_owned()).collect();
    findings.extend((!vague.is_empty()).then(|| {
        let values = Value::words(finding::numbers::list(&vague));
        Finding::new(Code::PredictVague).with("values", values)
    }));
    findings.extend(missed(&cells));
    findings.extend(left_out);
    let text = |value: &FittedValue| found.design.shown(&value.name).unwrap_or_default();
    let why = format!("{drive}, fitted to {} cells of {}", cells.len(), runs.join(", "));
    Ok(DriveFit {
        schema: "plimsoll.fit/1",
        array: name.to_owned(),
        values: found.values.iter().map(|value| (value.clone(), text(value))).collect(),
        part: found.design.drive_text(&why),
        answer: Section { question: Question::Answer, findings },
        drive,
        runs,
        cells,
        median_error,
        p90_error,
    })
}

/// Which part hides the drive, where it is another one.
fn elsewhere(
    design: ArrayDesign,
    cells: Vec<crate::measured::Seen>,
) -> Result<FitFailure, LoadError> {
    let cells = compared(&Model::new(design), cells)?;
    let limited = |part: Component| cells.iter().filter(|cell| cell.limited_by == part).count();
    let most = Component::ALL.into_iter().max_by_key(|part| limited(*part));
    Ok(match most {
        Some(part) if part != Component::Drives => FitFailure::Elsewhere(part),
        _ => FitFailure::Fit(FitError::Undetermined),
    })
}
