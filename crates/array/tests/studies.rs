//! The published tables of the studies against what the model says.
use array::{Answer, Fill, Load, Model, builtin};
use serde::Deserialize;
use units::Bytes;

#[derive(Deserialize)]
struct Tables {
    table: Vec<Table>,
}

#[derive(Deserialize)]
struct Table {
    name: String,
    array: String,
    operation: String,
    fitted: bool,
    cells: Vec<(Bytes, f64, f64, f64)>,
}

fn tables() -> Vec<Table> {
    toml::from_str::<Tables>(include_str!("data/bm-flash.toml")).unwrap().table
}

#[test]
fn show() {
    for table in tables() {
        let model = Model::new(builtin::design(&table.array).unwrap());
        println!("{} {}", table.name, table.fitted);
        for (block, one, ten, forty) in &table.cells {
            print!("{:>8}", block.exact());
            for (threads, published) in [(1, one), (10, ten), (40, forty)] {
                let mut load = Load::random_reads(*block, threads, Bytes::gib(4));
                if table.operation == "write" {
                    load.read_share = 0.0;
                    load.cache =
                        if table.array.contains("raid0") { Fill::Room } else { Fill::Full };
                }
                let a: Answer = model.answer(&load).unwrap();
                print!(
                    " {:>8} {:>8.0} {:>+6.1}% {:?} ",
                    published,
                    a.rate,
                    (a.rate / published - 1.0) * 100.0,
                    a.binding
                );
            }
            println!();
        }
    }
}
