//! How large a database is, and who is who in it.

/// Districts of a warehouse, and terminals of it: one a district.
pub const DISTRICTS: u32 = 10;

/// Names are a number below this, in three digits.
pub(crate) const NAMES: u32 = 1000;

/// Number of warehouses, and how many rows belong to each.
///
/// The specification scales by warehouses alone. Fewer items or customers make a database for tests:
/// its skew and its sizes are not TPC-C's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    warehouses: u32,
    items: u32,
    customers: u32,
}

/// A size that no database of this kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// None, or so many that counters of 32 bits overflow.
    #[error("{0} warehouses, wanted 1 to 100000")]
    Warehouses(u32),
    /// None, or more than the specification has.
    #[error("{0} items, wanted 1 to 100000")]
    Items(u32),
    /// Not a number of which seven tenths can be delivered.
    #[error("{0} customers per district, wanted a multiple of 10 up to 3000")]
    Customers(u32),
}

/// One district of one warehouse; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DistrictId {
    /// Its warehouse.
    pub warehouse: u32,
    /// Its number in the warehouse, 1 to [`DISTRICTS`].
    pub district: u32,
}

/// One customer of one district; numbers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CustomerId {
    /// The district it belongs to.
    pub home: DistrictId,
    /// Its number in the district.
    pub customer: u32,
}

impl Scale {
    /// The size of the specification: 100 000 items, 3000 customers per district (clause 1.2).
    pub fn new(warehouses: u32) -> Result<Self, ScaleError> {
        match warehouses {
            1..=100_000 => Ok(Self { warehouses, items: 100_000, customers: 3000 }),
            _ => Err(ScaleError::Warehouses(warehouses)),
        }
    }

    /// With fewer items, for tests.
    pub fn with_items(self, items: u32) -> Result<Self, ScaleError> {
        match items {
            1..=100_000 => Ok(Self { items, ..self }),
            _ => Err(ScaleError::Items(items)),
        }
    }

    /// With fewer customers per district, for tests; as many orders are loaded.
    pub fn with_customers(self, customers: u32) -> Result<Self, ScaleError> {
        match customers {
            10..=3000 if customers.is_multiple_of(10) => Ok(Self { customers, ..self }),
            _ => Err(ScaleError::Customers(customers)),
        }
    }

    /// Number of warehouses.
    pub const fn warehouses(self) -> u32 {
        self.warehouses
    }

    /// Number of items; as many stock rows per warehouse.
    pub const fn items(self) -> u32 {
        self.items
    }

    /// Customers of a district, and orders loaded into it.
    pub const fn customers(self) -> u32 {
        self.customers
    }

    /// Orders of a district that were delivered before the load: seven tenths.
    pub const fn delivered(self) -> u32 {
        self.customers / 10 * 7
    }

    /// Last names that customers of a district surely have: `0..` this. A thousand unless reduced.
    pub const fn names(self) -> u32 {
        if self.customers < NAMES { self.customers } else { NAMES }
    }

    /// Every district, by warehouse; also the homes of the ten terminals of each warehouse.
    pub fn districts(self) -> impl Iterator<Item = DistrictId> {
        (1..=self.warehouses).flat_map(|warehouse| {
            (1..=DISTRICTS).map(move |district| DistrictId { warehouse, district })
        })
    }
}
