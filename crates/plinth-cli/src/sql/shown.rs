//! Values that their usual text would not tell: what is to be shown is made ready here, for all formats of text.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
    Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, make_array};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

/// Days and seconds since 1970 of the years 1 to 9999, of which all have a text.
const DAYS: (i64, i64) = (-719_162, 2_932_896);
const SECONDS: (i64, i64) = (DAYS.0 * DAY, DAYS.1 * DAY + DAY - 1);

/// Seconds of a day.
const DAY: i64 = 86_400;

/// 1973 in seconds since 1970: since then no zone is off by parts of minutes.
const WHOLE_MINUTES: i64 = 94_694_400;

/// A batch as it is shown: moments in zones that were off by parts of minutes then, which offsets have no room for, are in UTC.
///
/// # Errors
/// If a value has no text: a date beyond all calendars, such as the infinite ones of other databases.
pub(crate) fn shown(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(schema.fields().len());
    let mut columns = Vec::with_capacity(schema.fields().len());
    let mut changed = false;
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if has_far(column) {
            check(field, column)?;
        }
        match in_utc(column)? {
            None => {
                fields.push(Arc::clone(field));
                columns.push(Arc::clone(column));
            }
            Some(texts) => {
                changed = true;
                fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
                columns.push(texts);
            }
        }
    }
    if !changed {
        return Ok(batch.clone());
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// Whether there may be a value that has no text.
fn has_far(array: &ArrayRef) -> bool {
    fn outside<T: ArrowPrimitiveType>(array: &ArrayRef, (first, last): (i64, i64)) -> bool
    where
        T::Native: Into<i64>,
    {
        array.as_primitive::<T>().iter().flatten().any(|value| !(first..=last).contains(&value.into()))
    }
    let seconds = |each: i64| (SECONDS.0 * each, SECONDS.1 * each + each - 1);
    let of_day = |each: i64| (0, DAY * each - 1);
    match array.data_type() {
        DataType::Date32 => outside::<Date32Type>(array, DAYS),
        DataType::Date64 => outside::<Date64Type>(array, seconds(1_000)),
        DataType::Timestamp(TimeUnit::Second, _) => outside::<TimestampSecondType>(array, seconds(1)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => outside::<TimestampMillisecondType>(array, seconds(1_000)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => outside::<TimestampMicrosecondType>(array, seconds(1_000_000)),
        DataType::Time32(TimeUnit::Second) => outside::<Time32SecondType>(array, of_day(1)),
        DataType::Time32(_) => outside::<Time32MillisecondType>(array, of_day(1_000)),
        DataType::Time64(TimeUnit::Microsecond) => outside::<Time64MicrosecondType>(array, of_day(1_000_000)),
        DataType::Time64(_) => outside::<Time64NanosecondType>(array, of_day(1_000_000_000)),
        _ => array.to_data().child_data().iter().any(|child| has_far(&make_array(child.clone()))),
    }
}

/// Whether all values have a text.
fn check(field: &Field, column: &ArrayRef) -> Result<(), ArrowError> {
    let options = FormatOptions::new().with_display_error(false);
    let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
    let nulls = column.logical_nulls();
    for row in (0..column.len()).filter(|&row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))) {
        if formatter.value(row).try_to_string().is_err() {
            let what = "holds a date or time that is too far off to be written out; leave such rows out, or the column";
            return Err(ArrowError::CastError(format!("column {:?} {what}", field.name())));
        }
    }
    Ok(())
}

/// The texts of moments, where some of them are to be told in UTC.
fn in_utc(column: &ArrayRef) -> Result<Option<ArrayRef>, ArrowError> {
    let DataType::Timestamp(unit, Some(zone)) = column.data_type() else { return Ok(None) };
    // Offsets that are written out have no seconds.
    if zone.starts_with(['+', '-']) || matches!(zone.as_ref(), "UTC" | "Z") {
        return Ok(None);
    }
    let each: i64 = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let counts = cast(column, &DataType::Int64)?;
    let counts = counts.as_primitive::<arrow_array::types::Int64Type>();
    let early = |count: i64| count < WHOLE_MINUTES.saturating_mul(each);
    if !counts.iter().flatten().any(early) {
        return Ok(None);
    }
    let utc = cast(column, &DataType::Timestamp(*unit, Some("UTC".into())))?;
    let options = FormatOptions::new().with_display_error(false);
    let here = ArrayFormatter::try_new(column.as_ref(), &options)?;
    let there = ArrayFormatter::try_new(utc.as_ref(), &options)?;
    let mut changed = false;
    let texts = counts.iter().enumerate().map(|(row, count)| {
        let Some(count) = count else { return Ok(None) };
        let local = here.value(row).try_to_string()?;
        if !early(count) {
            return Ok(Some(local));
        }
        let universal = there.value(row).try_to_string()?;
        let off = second(&local) != second(&universal);
        changed |= off;
        Ok(Some(if off { universal } else { local }))
    });
    let texts = texts.collect::<Result<StringArray, ArrowError>>()?;
    Ok(changed.then(|| Arc::new(texts) as ArrayRef))
}

/// The digits of the second of a moment's text.
fn second(text: &str) -> Option<&str> {
    text.split_once('T')?.1.get(6..8)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Date32Array, ListArray, TimestampSecondArray};

    use super::*;

    fn one(column: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("t", column)]).unwrap()
    }

    #[test]
    fn moments_whose_offset_has_seconds_are_told_in_utc() {
        let moments = vec![Some(-3_786_825_600), None, Some(0), Some(1_700_000_000)];
        let zoned =
            |zone: &str| -> ArrayRef { Arc::new(TimestampSecondArray::from(moments.clone()).with_timezone(zone)) };
        let batch = shown(&one(zoned("Europe/Amsterdam"))).unwrap();
        let texts: Vec<_> = batch.column(0).as_string::<i32>().iter().collect();
        assert_eq!(
            texts,
            [Some("1850-01-01T00:00:00Z"), None, Some("1970-01-01T01:00:00+01:00"), Some("2023-11-14T23:13:20+01:00")]
        );
        for zone in ["UTC", "+01:30", "Asia/Kolkata"] {
            let late = one(zoned(zone)).slice(2, 2);
            assert_eq!(shown(&late).unwrap(), late);
        }
    }

    #[test]
    fn dates_without_a_text_are_refused_wherever_they_are() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(0), None, Some(i32::MAX)]));
        let e = shown(&one(Arc::clone(&days))).unwrap_err().to_string();
        assert!(e.contains("column \"t\"") && e.contains("too far off"), "{e}");
        assert!(shown(&one(days.slice(0, 2))).is_ok());
        let list = ListArray::from_iter_primitive::<Date32Type, _, _>([Some([Some(0)]), Some([Some(i32::MAX)])]);
        assert!(shown(&one(Arc::new(list.clone()))).is_err());
        // What is sliced away is not shown.
        assert!(shown(&one(Arc::new(list.slice(0, 1)))).is_ok());
        // Years that have more than four digits have a text.
        assert!(shown(&one(Arc::new(Date32Array::from(vec![20_000_000])))).is_ok());
    }
}
