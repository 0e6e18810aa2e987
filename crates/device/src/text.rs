//! Specs are written as people read them (`"33us"`, `"4GiB"`), since a bare number of time would
//! be read back as seconds.

use serde::{Serialize, Serializer};
use units::{Bytes, Nanos};

pub(crate) trait Exact {
    fn exact_text(&self) -> Option<String>;
}

impl Exact for Nanos {
    fn exact_text(&self) -> Option<String> {
        Some(self.exact())
    }
}

impl Exact for Bytes {
    fn exact_text(&self) -> Option<String> {
        Some(self.exact())
    }
}

impl<T: Exact> Exact for Option<T> {
    fn exact_text(&self) -> Option<String> {
        self.as_ref().and_then(Exact::exact_text)
    }
}

/// For `#[serde(serialize_with)]`.
pub(crate) fn exact<T: Exact, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.exact_text().serialize(serializer)
}
