use serde::{Deserialize, Serialize};

use crate::model::ModelSpec;
use crate::{FaultRule, Faulty, Model, ModelError};

/// A file that describes a simulated device and what goes wrong with it: TOML with `schema`,
/// `name`, `why`, a table `[model]` and any number of `[[fault]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwinSpec {
    /// Version of the format.
    pub schema: u32,
    /// Short name.
    pub name: String,
    /// What it stands for and where its numbers come from.
    #[serde(default)]
    pub why: String,
    /// The device.
    pub model: ModelSpec,
    /// What goes wrong, in order of precedence.
    #[serde(default, rename = "fault", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultRule>,
}

impl TwinSpec {
    /// The version of the format that is read here.
    pub const SCHEMA: u32 = 1;

    /// Whether it describes a device; [`Self::open`] asks too.
    pub fn check(&self) -> Result<(), ModelError> {
        if self.schema != Self::SCHEMA {
            return Err(ModelError::Schema { seen: self.schema, wanted: Self::SCHEMA });
        }
        self.model.check()?;
        crate::faulty::check(&self.faults)
    }

    /// The device, idle at time 0 of its own clock.
    ///
    /// * `slots`: requests it takes in flight.
    /// * `seed`: of everything that varies by chance.
    pub fn open(&self, slots: u32, seed: u64) -> Result<Faulty<Model>, ModelError> {
        self.check()?;
        Faulty::new(Model::new(&self.model, slots, seed)?, &self.faults, seed)
    }
}
