//! One claim of a study, and what the model says of it.

use array::{Answer, Component};

#[derive(Clone)]
pub struct Claim {
    /// R1 to R23.
    pub id: String,
    /// S1 to S5, or where else it was published.
    pub study: String,
    pub what: String,
    /// Number and unit, or what the study says.
    pub published: String,
    /// Number and unit, or what the model finds.
    pub predicted: String,
    /// Both as shares of the published value; `None` where the claim is a statement.
    pub error: Option<f64>,
    pub tolerance: Option<f64>,
    pub role: Role,
    pub arrays: Vec<String>,
    /// The part that limits there.
    pub limits: String,
    pub is_met: bool,
    /// Assumed values with which it would be missed instead of met, or met.
    pub depends: String,
    /// Why it is known not to be met, or not to be predicted.
    pub miss: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Fitted,
    HeldOut,
    /// The model has no part that would do it.
    NotPredicted,
    /// The study says why; the model finds another cause, or the same one in numbers.
    Conclusion,
}

impl Role {
    pub const fn of(is_fitted: bool) -> Self {
        if is_fitted { Self::Fitted } else { Self::HeldOut }
    }

    pub const fn text(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::HeldOut => "held out",
            Self::NotPredicted => "not predicted",
            Self::Conclusion => "held out, conclusion",
        }
    }
}

impl Claim {
    /// A number, in `unit`, of one array.
    pub fn number(
        [id, study, what, array, unit]: [&str; 5],
        [published, predicted, tolerance]: [f64; 3],
    ) -> Self {
        let error = predicted / published - 1.0;
        Self {
            published: format!("{} {unit}", short(published)),
            predicted: format!("{} {unit}", short(predicted)),
            error: Some(error),
            tolerance: Some(tolerance),
            is_met: error.abs() <= tolerance,
            ..Self::statement([id, study, what, "", ""], &[array])
        }
    }

    /// A statement that holds in the model: id, study, what, published, predicted.
    pub fn statement(texts: [&str; 5], arrays: &[&str]) -> Self {
        let [id, study, what, published, predicted] = texts.map(str::to_owned);
        Self {
            id,
            study,
            what,
            published,
            predicted,
            error: None,
            tolerance: None,
            role: Role::HeldOut,
            arrays: arrays.iter().map(|&array| array.to_owned()).collect(),
            limits: String::new(),
            depends: String::new(),
            is_met: true,
            miss: None,
        }
    }

    pub fn limited(self, by: Component) -> Self {
        Self { limits: name(by).to_owned(), ..self }
    }

    pub fn used(self, role: Role) -> Self {
        Self { role, ..self }
    }

    pub fn status(&self) -> String {
        let status = match (self.role, self.is_met) {
            (Role::NotPredicted, _) => "not predicted",
            (_, true) => "met",
            (_, false) => "missed",
        };
        match self.depends.as_str() {
            "" => status.to_owned(),
            depends => format!("{status}, depends on {depends}"),
        }
    }

    /// Its row of the table.
    pub fn row(&self) -> String {
        // Rounded first, and never -0: the last bit of a machine's logarithms must not show.
        let error = self.error.map(|share| (share * 1e3).round() / 10.0 + 0.0);
        let error = error.map(|error| format!("{error:+.1} %")).unwrap_or_default();
        let tolerance = self.tolerance.map(|share| format!("{:.1} %", share * 100.0));
        let tolerance = tolerance.unwrap_or_default();
        let Self { id, study, what, published, predicted, limits, .. } = self;
        let (role, status) = (self.role.text(), self.status());
        format!(
            "| {id} | {study} | {what} | {published} | {predicted} | {error} | {tolerance} | {role} | {limits} | {status} |"
        )
    }
}

/// With three digits or more, unless it is a whole number.
pub fn short(number: f64) -> String {
    match number {
        _ if (number - number.round()).abs() < 1e-9 => number.round().to_string(),
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

pub const fn name(component: Component) -> &'static str {
    match component {
        Component::Host => "host",
        Component::FileLock => "lock of the file",
        Component::Link => "link",
        Component::Controller => "controller",
        Component::Drives => "drives",
    }
}

/// What limits, how busy each part is, and what more of the first would gain.
pub fn finding(answer: &Answer) -> String {
    let busy = answer
        .parts
        .iter()
        .map(|part| format!("{} {:.0} %", name(part.component), part.busy * 100.0));
    let gain = answer.parts.iter().find(|part| part.component == answer.binding).unwrap().gain;
    format!(
        "{} limits to {} requests/s, twice as fast it gains x{gain:.2}; busy: {}",
        name(answer.binding),
        short(answer.rate),
        busy.collect::<Vec<_>>().join(", ")
    )
}
