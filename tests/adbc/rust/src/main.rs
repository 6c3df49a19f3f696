// SPDX-License-Identifier: LGPL-2.1-or-later
//! adbc-reader URI SQL: finds the driver "sqlipc" by its manifest, runs SQL, and prints the number of rows, and the sum of the
//! first column.
use adbc_core::options::{AdbcVersion, OptionDatabase};
use adbc_core::{Connection, Database, Driver, Statement, LOAD_FLAG_DEFAULT};
use adbc_driver_manager::ManagedDriver;
use arrow_array::{Array, Int64Array};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let mut driver = ManagedDriver::load_from_name("sqlipc", None, AdbcVersion::V110, LOAD_FLAG_DEFAULT, None)?;
    let database = driver.new_database_with_opts([(OptionDatabase::Uri, arguments[1].as_str().into())])?;
    let mut connection = database.new_connection()?;
    let mut statement = connection.new_statement()?;
    statement.set_sql_query(&arguments[2])?;
    let (mut rows, mut sum) = (0, 0);
    for batch in statement.execute()? {
        let batch = batch?;
        let column = batch.column(0).as_any().downcast_ref::<Int64Array>().ok_or("the first column is not int64")?;
        rows += column.len();
        sum += column.iter().flatten().sum::<i64>();
    }
    println!("{rows} {sum}");
    Ok(())
}
