//! Values, how they are written, and how they compare.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

/// Numbers from a seed.
pub(super) struct Random(u64, u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed, seed)
    }

    pub(super) fn seed(&self) -> u64 {
        self.0
    }

    fn next(&mut self) -> u64 {
        self.1 = self.1.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.1;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    fn small(&mut self) -> i64 {
        i64::try_from(self.below(40)).unwrap() - 4
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    BigInt,
    Double,
    Decimal,
    Text,
    Bool,
    Date,
    Timestamp,
}

pub(super) const KINDS: [Kind; 8] =
    [Kind::Int, Kind::BigInt, Kind::Double, Kind::Decimal, Kind::Text, Kind::Bool, Kind::Date, Kind::Timestamp];

/// A value: numbers of all kinds but doubles as whole ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Decimal(i128),
    Double(f64),
    Text(String),
}

/// Days of dates, from before 1970 and from leap years.
const DAYS: [i64; 11] = [-1, 0, 1, 11_016, 19_782, 19_783, -25_567, 20_000, 58, -171_503, 2_932_896];

const DOUBLES: [f64; 16] = [
    0.0,
    -0.0,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1.0,
    1.5,
    -1.5,
    2.0,
    0.1,
    0.30000000000000004,
    1e300,
    -1e300,
    5e-324,
    f64::MAX,
    f64::MIN,
];

impl Kind {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Int => "INT",
            Self::BigInt => "BIGINT",
            Self::Double => "DOUBLE",
            Self::Decimal => "DECIMAL(20, 2)",
            Self::Text => "TEXT",
            Self::Bool => "BOOLEAN",
            Self::Date => "DATE",
            Self::Timestamp => "TIMESTAMP",
        }
    }

    /// Whether there are indexes of it.
    pub(super) fn is_indexed(self) -> bool {
        !matches!(self, Self::Double | Self::Decimal | Self::Bool)
    }

    /// Whether a column of it may have a value.
    pub(super) fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Int, Value::Int(value)) => i32::try_from(*value).is_ok(),
            _ => true,
        }
    }

    pub(super) fn value(self, random: &mut Random) -> Value {
        if random.below(7) == 0 { Value::Null } else { self.value_there(random) }
    }

    pub(super) fn value_there(self, random: &mut Random) -> Value {
        let rare = random.below(12) == 0;
        match self {
            Self::Int if rare => Value::Int((*random.of(&[i32::MIN, i32::MAX, 65_536, -129])).into()),
            Self::BigInt if rare => Value::Int(*random.of(&[i64::MIN + 9, i64::MAX - 9, 1 << 53, (1 << 53) + 1])),
            Self::Int | Self::BigInt => Value::Int(random.small()),
            Self::Double if random.below(3) > 0 => Value::Double(*random.of(&DOUBLES)),
            Self::Double => Value::Double(f64::from(i32::try_from(random.small()).unwrap()) / 4.0),
            Self::Decimal if rare => {
                Value::Decimal(*random.of(&[1_234_567_890_123_456_789, -99_999_999_999_999_999_999]))
            }
            Self::Decimal => Value::Decimal((random.small() * 5).into()),
            Self::Text => Value::Text(random.text(rare)),
            Self::Bool => Value::Bool(random.below(2) == 0),
            Self::Date => Value::Int(*random.of(&DAYS)),
            Self::Timestamp => {
                let micros = *random.of(&[0, 0, 1, 999_999, 3_600_000_000, 86_399_999_999]);
                Value::Int(random.of(&DAYS) * 86_400_000_000 + micros)
            }
        }
    }
}

impl Random {
    fn text(&mut self, rare: bool) -> String {
        let stem = *self.of(&["", "a", "b", "ab", "abc", "abd", "o'x", "äö", "z\u{10ffff}", " ", "A", "ab "]);
        match (rare, self.below(3)) {
            (true, length) => stem.repeat(30 * (length + 1)),
            (false, 0) => format!("{stem}{}", self.below(6)),
            (false, _) => stem.to_owned(),
        }
    }
}

impl Value {
    /// As SQL writes it where its type is known.
    pub(super) fn plain(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Decimal(value) => {
                let sign = if *value < 0 { "-" } else { "" };
                format!("{sign}{}.{:02}", value.abs() / 100, value.abs() % 100)
            }
            Self::Double(value) if value.is_finite() => format!("{value:?}"),
            Self::Double(value) => format!("CAST('{value}' AS DOUBLE)"),
            Self::Text(value) => format!("'{}'", value.replace('\'', "''")),
        }
    }

    /// As SQL writes one of a type.
    pub(super) fn literal(&self, kind: Kind) -> String {
        match (self, kind) {
            (Self::Int(days), Kind::Date) => format!("DATE '{}'", date(*days)),
            (Self::Int(micros), Kind::Timestamp) => {
                let (days, micros) = (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000));
                let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
                let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                format!("TIMESTAMP '{} {hour:02}:{minute:02}:{second:02}.{micros:06}'", date(days))
            }
            (Self::Null, kind) => format!("CAST(NULL AS {})", kind.sql()),
            _ => self.plain(),
        }
    }

    /// As SQL writes one that nothing beside it gives a type.
    pub(super) fn typed(&self, kind: Kind) -> String {
        match self {
            Self::Decimal(_) => format!("CAST({} AS {})", self.plain(), kind.sql()),
            // Among decimals it is one of them, and they have one zero.
            Self::Double(value) if *value == 0.0 && value.is_sign_negative() => "CAST('-0.0' AS DOUBLE)".to_owned(),
            _ => self.literal(kind),
        }
    }

    /// The order of values of a type, with NULL first. The zeros are different here.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Less,
            (_, Self::Null) => Ordering::Greater,
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Decimal(a), Self::Decimal(b)) => a.cmp(b),
            (Self::Double(a), Self::Double(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (a, b) => panic!("{a:?} beside {b:?}"),
        }
    }

    /// How SQL compares two values, neither of which is NULL: the zeros are one.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Double(a), Self::Double(b)) if *a == 0.0 && *b == 0.0 => Ordering::Equal,
            (a, b) => a.order(b),
        }
    }

    pub(super) fn same(&self, other: &Self) -> bool {
        *self != Self::Null && *other != Self::Null && self.compare(other).is_eq()
    }
}

/// The order of rows.
pub(super) fn order_all(one: &[Value], other: &[Value]) -> Ordering {
    let parts = one.iter().zip(other).map(|(a, b)| a.order(b));
    parts.fold(Ordering::Equal, Ordering::then)
}

/// A day as SQL writes it, by the calendar that counts years from March.
fn date(days: i64) -> String {
    let z = days + 719_468;
    let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The rows of a batch.
pub(super) fn rows(batch: &RecordBatch) -> Vec<Vec<Value>> {
    (0..batch.num_rows()).map(|row| batch.columns().iter().map(|column| value(column, row)).collect()).collect()
}

fn value(column: &dyn Array, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => Value::Bool(column.as_boolean().value(row)),
        DataType::Int32 => Value::Int(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Value::Int(column.as_primitive::<Int64Type>().value(row)),
        DataType::UInt64 => Value::Int(column.as_primitive::<UInt64Type>().value(row).try_into().unwrap()),
        DataType::Float64 => Value::Double(column.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(20, 2) => Value::Decimal(column.as_primitive::<Decimal128Type>().value(row)),
        DataType::Date32 => Value::Int(column.as_primitive::<Date32Type>().value(row).into()),
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            Value::Int(column.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Utf8View => Value::Text(column.as_string_view().value(row).to_owned()),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row).to_owned()),
        other => panic!("{other}"),
    }
}
