//! The nine tables (clause 1.3), as data.

use crate::dialect::Dialect;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// One row per warehouse.
    Warehouse,
    /// Ten per warehouse.
    District,
    /// 3000 per district.
    Customer,
    /// One per payment; starts with one per customer.
    History,
    /// Orders not yet delivered.
    NewOrder,
    /// Orders; starts with one per customer.
    Orders,
    /// 5 to 15 per order.
    OrderLine,
    /// 100 000, whatever the number of warehouses.
    Item,
    /// One per item and warehouse.
    Stock,
}

/// A table in words: names, and columns as `name kind` or `name kind null`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableText {
    /// Its name in SQL.
    pub name: &'static str,
    pub(crate) columns: &'static str,
    pub(crate) key: &'static str,
    pub(crate) index: &'static str,
}

impl TableText {
    /// The names of its columns, in the order of its rows.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.columns.split(", ").filter_map(|column| column.split(' ').next())
    }

    /// The statement that creates it. SQLite and InnoDB keep rows in the order of the primary key, so it
    /// belongs to the table there.
    pub fn create(&self, dialect: Dialect) -> String {
        let Self { name, columns, key, .. } = self;
        let column = |text: &str| {
            let (text, null) =
                text.strip_suffix(" null").map_or((text, " not null"), |text| (text, ""));
            let (name, kind) = text.split_once(' ').unwrap_or((text, "int"));
            format!("{name} {}{null}", dialect.column(kind))
        };
        let mut parts: Vec<String> = columns.split(", ").map(column).collect();
        let has_key = !key.is_empty() && dialect != Dialect::Postgres;
        parts.extend(has_key.then(|| format!("primary key ({key})")));
        let end = match dialect {
            Dialect::Sqlite if has_key => " without rowid",
            Dialect::MariaDb => " engine = InnoDB",
            _ => "",
        };
        format!("create table {name} ({}){end}", parts.join(", "))
    }

    /// The statements to run once it is loaded: keys that are cheaper to build afterwards.
    pub fn finish(&self, dialect: Dialect) -> Vec<String> {
        let Self { name, key, index, .. } = self;
        let late_key = !key.is_empty() && dialect == Dialect::Postgres;
        let key = late_key.then(|| format!("alter table {name} add primary key ({key})"));
        let index =
            (!index.is_empty()).then(|| format!("create index {name}_i on {name} ({index})"));
        key.into_iter().chain(index).collect()
    }

    /// The statement that inserts one row, with a place holder for each column.
    pub fn insert(&self, dialect: Dialect) -> String {
        let holders = vec!["?"; self.columns().count()].join(", ");
        dialect.text(&format!("insert into {} values ({holders})", self.name))
    }
}

impl Table {
    /// All nine, so that each row's parents come first.
    pub const ALL: [Self; 9] = [
        Self::Item,
        Self::Warehouse,
        Self::Stock,
        Self::District,
        Self::Customer,
        Self::History,
        Self::Orders,
        Self::NewOrder,
        Self::OrderLine,
    ];

    /// It in words.
    #[rustfmt::skip]
    pub const fn text(self) -> TableText {
        let (name, key, index, columns) = match self {
            Self::Warehouse => ("warehouse", "w_id", "",
                "w_id int, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), w_city varchar(20), \
                 w_state char(2), w_zip char(9), w_tax rate, w_ytd money(12)"),
            Self::District => ("district", "d_w_id, d_id", "",
                "d_id int, d_w_id int, d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), \
                 d_city varchar(20), d_state char(2), d_zip char(9), d_tax rate, d_ytd money(12), d_next_o_id int"),
            Self::Customer => ("customer", "c_w_id, c_d_id, c_id", "c_w_id, c_d_id, c_last, c_first",
                "c_id int, c_d_id int, c_w_id int, c_first varchar(16), c_middle char(2), c_last varchar(16), \
                 c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state char(2), c_zip char(9), \
                 c_phone char(16), c_since date, c_credit char(2), c_credit_lim money(12), c_discount rate, \
                 c_balance money(12), c_ytd_payment money(12), c_payment_cnt int, c_delivery_cnt int, \
                 c_data varchar(500)"),
            Self::History => ("history", "", "",
                "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date date, h_amount money(6), \
                 h_data varchar(24)"),
            Self::NewOrder => ("new_order", "no_w_id, no_d_id, no_o_id", "",
                "no_o_id int, no_d_id int, no_w_id int"),
            Self::Orders => ("orders", "o_w_id, o_d_id, o_id", "o_w_id, o_d_id, o_c_id, o_id",
                "o_id int, o_d_id int, o_w_id int, o_c_id int, o_entry_d date, o_carrier_id int null, o_ol_cnt int, \
                 o_all_local int"),
            Self::OrderLine => ("order_line", "ol_w_id, ol_d_id, ol_o_id, ol_number", "",
                "ol_o_id int, ol_d_id int, ol_w_id int, ol_number int, ol_i_id int, ol_supply_w_id int, \
                 ol_delivery_d date null, ol_quantity int, ol_amount money(6), ol_dist_info char(24)"),
            Self::Item => ("item", "i_id", "",
                "i_id int, i_im_id int, i_name varchar(24), i_price money(5), i_data varchar(50)"),
            Self::Stock => ("stock", "s_w_id, s_i_id", "",
                "s_i_id int, s_w_id int, s_quantity int, s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), \
                 s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), \
                 s_dist_09 char(24), s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int, \
                 s_data varchar(50)"),
        };
        TableText { name, columns, key, index }
    }
}
