//! Types and columns as `ArrowSchema`, there and back.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema, TimeUnit, UnionFields, UnionMode};

use super::{CSchema, Result, all_of};

const DICTIONARY_ORDERED: i64 = 1;
const NULLABLE: i64 = 2;
const KEYS_SORTED: i64 = 4;

/// How deep types may nest that come from elsewhere.
const DEPTH: usize = 64;

/// What a structure that was made here holds.
struct Private {
    // Read by their pointers.
    _format: CString,
    _name: CString,
    _metadata: Option<Vec<u8>>,
    children: Box<[*mut CSchema]>,
    dictionary: *mut CSchema,
}

/// Releases a structure that was made here.
unsafe extern "C" fn release(schema: *mut CSchema) {
    // SAFETY: the consumer hands in a structure of ours that is not released.
    let schema = unsafe { &mut *schema };
    // SAFETY: it was made of such a box.
    let private = unsafe { Box::from_raw(schema.private_data.cast::<Private>()) };
    for child in private.children.iter().chain([&private.dictionary]).filter(|child| !child.is_null()) {
        // SAFETY: each was made of a box; one that the consumer has moved out is marked as released.
        drop(unsafe { Box::from_raw(*child) });
    }
    schema.release = None;
    schema.private_data = null_mut();
}

impl CSchema {
    /// Columns as a structure of type struct.
    ///
    /// # Errors
    /// If a type has no counterpart in the interface, or a name holds a zero.
    pub fn of_schema(schema: &Schema) -> Result<Self> {
        let fields = DataType::Struct(schema.fields().clone());
        Self::of(&fields, "", 0, schema.metadata())
    }

    fn of_field(field: &Field) -> Result<Self> {
        let mut flags = if field.is_nullable() { NULLABLE } else { 0 };
        if field.dict_is_ordered() == Some(true) {
            flags |= DICTIONARY_ORDERED;
        }
        Self::of(field.data_type(), field.name(), flags, field.metadata())
    }

    fn of(data_type: &DataType, name: &str, flags: i64, metadata: &HashMap<String, String>) -> Result<Self> {
        let fields: Vec<&Field> = match data_type {
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::ListView(field)
            | DataType::LargeListView(field)
            | DataType::FixedSizeList(field, _)
            | DataType::Map(field, _) => vec![field],
            DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
            DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.as_ref()).collect(),
            _ => Vec::new(),
        };
        let sorted = if matches!(data_type, DataType::Map(_, true)) { KEYS_SORTED } else { 0 };
        let named =
            |text: String| CString::new(text).map_err(|_| format!("{name:?}: the name of a column holds a zero"));
        let (format, c_name) = (named(format(data_type)?)?, named(name.to_owned())?);
        let children = fields.into_iter().map(Self::of_field).collect::<Result<Vec<_>>>()?;
        let children: Box<[_]> = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
        let dictionary = match data_type {
            DataType::Dictionary(_, values) => {
                Box::into_raw(Box::new(Self::of(values, "", NULLABLE, &HashMap::new())?))
            }
            _ => null_mut(),
        };
        let metadata = (!metadata.is_empty()).then(|| serialized(metadata)).transpose()?;
        let (format_at, name_at) = (format.as_ptr(), c_name.as_ptr());
        let metadata_at = metadata.as_ref().map_or(null(), |bytes| bytes.as_ptr().cast::<c_char>());
        let n_children = i64::try_from(children.len()).map_err(|e| e.to_string())?;
        let mut private =
            Box::new(Private { _format: format, _name: c_name, _metadata: metadata, children, dictionary });
        Ok(Self {
            format: format_at,
            name: name_at,
            metadata: metadata_at,
            flags: flags | sorted,
            n_children,
            children: private.children.as_mut_ptr(),
            dictionary,
            release: Some(release),
            private_data: Box::into_raw(private).cast::<c_void>(),
        })
    }

    /// The columns that a structure of type struct has.
    pub fn to_schema(&self) -> Result<Schema> {
        let field = self.to_field(DEPTH)?;
        match field.data_type() {
            DataType::Struct(fields) => Ok(Schema::new_with_metadata(fields.clone(), field.metadata().clone())),
            other => Err(format!("a table is expected, and these are values of type {other}")),
        }
    }

    fn to_field(&self, depth: usize) -> Result<Field> {
        let Some(depth) = depth.checked_sub(1) else { return Err(format!("types nest more than {DEPTH} deep")) };
        if self.is_released() {
            return Err("the producer has released its schema".to_owned());
        }
        // SAFETY: a structure that is not released has strings that live as long as it.
        let (format, name) = unsafe { (text(self.format)?, text(self.name)?) };
        // SAFETY: so do its children.
        let children = unsafe { all_of(self.children, self.n_children, "children") }?;
        let fields = children.iter().map(|child| child.to_field(depth)).collect::<Result<Fields>>()?;
        let mut data_type = of_format(&format, &fields, self.flags & KEYS_SORTED != 0)?;
        // SAFETY: null, or a structure that lives as long as this one.
        if let Some(values) = unsafe { self.dictionary.as_ref() } {
            let values = values.to_field(depth)?.data_type().clone();
            data_type = DataType::Dictionary(Box::new(data_type), Box::new(values));
        }
        // SAFETY: null, or as the interface lays metadata out.
        let metadata = unsafe { metadata(self.metadata) }?;
        #[allow(deprecated, reason = "the order is a property of the field that is handed on")]
        let field = if self.flags & DICTIONARY_ORDERED == 0 {
            Field::new(name, data_type, self.flags & NULLABLE != 0)
        } else {
            Field::new_dict(name, data_type, self.flags & NULLABLE != 0, 0, true)
        };
        Ok(field.with_metadata(metadata))
    }
}

/// # Safety
/// `at` is null or leads to a string that ends with a zero.
unsafe fn text(at: *const c_char) -> Result<String> {
    if at.is_null() {
        return Ok(String::new());
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(at) };
    text.to_str().map(str::to_owned).map_err(|_| format!("{text:?}: a name is no UTF-8"))
}

/// Pairs as the interface lays them out: numbers in the machine's order before what they count.
fn serialized(metadata: &HashMap<String, String>) -> Result<Vec<u8>> {
    let number = |of: usize| i32::try_from(of).map(i32::to_ne_bytes).map_err(|e| e.to_string());
    let mut sorted: Vec<_> = metadata.iter().collect();
    sorted.sort();
    let mut bytes = number(sorted.len())?.to_vec();
    for text in sorted.into_iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend(number(text.len())?);
        bytes.extend(text.as_bytes());
    }
    Ok(bytes)
}

/// # Safety
/// `at` is null or leads to pairs as the interface lays them out.
unsafe fn metadata(at: *const c_char) -> Result<HashMap<String, String>> {
    let mut pairs = HashMap::new();
    if at.is_null() {
        return Ok(pairs);
    }
    let mut at = at.cast::<u8>();
    let mut take = |len: usize| {
        // SAFETY: as the caller promises: what was read says how much is there.
        let bytes = unsafe { std::slice::from_raw_parts(at, len) };
        // SAFETY: the same.
        at = unsafe { at.add(len) };
        bytes.to_vec()
    };
    let number = |bytes: Vec<u8>| -> Result<usize> {
        let bytes = <[u8; 4]>::try_from(bytes).map_err(|_| "no number".to_owned())?;
        usize::try_from(i32::from_ne_bytes(bytes)).map_err(|_| "the metadata of a column is damaged".to_owned())
    };
    for _ in 0..number(take(4))? {
        let mut next = || -> Result<String> {
            let len = number(take(4))?;
            // What others keep there need not be text, and is not shown.
            Ok(String::from_utf8_lossy(&take(len)).into_owned())
        };
        let (key, value) = (next()?, next()?);
        pairs.insert(key, value);
    }
    Ok(pairs)
}

fn unit(unit: TimeUnit) -> char {
    match unit {
        TimeUnit::Second => 's',
        TimeUnit::Millisecond => 'm',
        TimeUnit::Microsecond => 'u',
        TimeUnit::Nanosecond => 'n',
    }
}

fn of_unit(unit: char) -> Option<TimeUnit> {
    Some(match unit {
        's' => TimeUnit::Second,
        'm' => TimeUnit::Millisecond,
        'u' => TimeUnit::Microsecond,
        'n' => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// Types whose format is a word.
const WORDS: [(&str, DataType); 26] = [
    ("n", DataType::Null),
    ("b", DataType::Boolean),
    ("c", DataType::Int8),
    ("C", DataType::UInt8),
    ("s", DataType::Int16),
    ("S", DataType::UInt16),
    ("i", DataType::Int32),
    ("I", DataType::UInt32),
    ("l", DataType::Int64),
    ("L", DataType::UInt64),
    ("e", DataType::Float16),
    ("f", DataType::Float32),
    ("g", DataType::Float64),
    ("z", DataType::Binary),
    ("Z", DataType::LargeBinary),
    ("vz", DataType::BinaryView),
    ("u", DataType::Utf8),
    ("U", DataType::LargeUtf8),
    ("vu", DataType::Utf8View),
    ("tdD", DataType::Date32),
    ("tdm", DataType::Date64),
    ("tts", DataType::Time32(TimeUnit::Second)),
    ("ttm", DataType::Time32(TimeUnit::Millisecond)),
    ("ttu", DataType::Time64(TimeUnit::Microsecond)),
    ("ttn", DataType::Time64(TimeUnit::Nanosecond)),
    ("tiM", DataType::Interval(IntervalUnit::YearMonth)),
];

/// The format of a type. That of a dictionary is its keys'.
fn format(data_type: &DataType) -> Result<String> {
    if let Some((word, _)) = WORDS.iter().find(|(_, known)| known == data_type) {
        return Ok((*word).to_owned());
    }
    Ok(match data_type {
        DataType::Interval(IntervalUnit::DayTime) => "tiD".to_owned(),
        DataType::Interval(IntervalUnit::MonthDayNano) => "tin".to_owned(),
        DataType::Duration(of) => format!("tD{}", unit(*of)),
        DataType::Timestamp(of, zone) => format!("ts{}:{}", unit(*of), zone.as_deref().unwrap_or_default()),
        DataType::Decimal32(precision, scale) => format!("d:{precision},{scale},32"),
        DataType::Decimal64(precision, scale) => format!("d:{precision},{scale},64"),
        DataType::Decimal128(precision, scale) => format!("d:{precision},{scale}"),
        DataType::Decimal256(precision, scale) => format!("d:{precision},{scale},256"),
        DataType::FixedSizeBinary(width) => format!("w:{width}"),
        DataType::FixedSizeList(_, len) => format!("+w:{len}"),
        DataType::List(_) => "+l".to_owned(),
        DataType::LargeList(_) => "+L".to_owned(),
        DataType::ListView(_) => "+vl".to_owned(),
        DataType::LargeListView(_) => "+vL".to_owned(),
        DataType::Struct(_) => "+s".to_owned(),
        DataType::Map(..) => "+m".to_owned(),
        DataType::Union(fields, mode) => {
            let ids: Vec<_> = fields.iter().map(|(id, _)| id.to_string()).collect();
            format!("+u{}:{}", if *mode == UnionMode::Dense { 'd' } else { 's' }, ids.join(","))
        }
        DataType::Dictionary(keys, _) => format(keys)?,
        other => return Err(format!("columns of type {other} can't be handed over; CAST them to another")),
    })
}

fn of_format(format: &str, fields: &Fields, sorted: bool) -> Result<DataType> {
    if let Some((_, data_type)) = WORDS.iter().find(|(word, _)| *word == format) {
        return Ok(data_type.clone());
    }
    let unknown = || format!("columns of Arrow's type {format:?} are not known here");
    let only = || match fields.iter().as_slice() {
        [field] => Ok(Arc::clone(field)),
        others => Err(format!("Arrow's type {format:?} has {} children, not one", others.len())),
    };
    let number = |text: &str| text.parse::<i32>().map_err(|_| unknown());
    Ok(match format {
        "tiD" => DataType::Interval(IntervalUnit::DayTime),
        "tin" => DataType::Interval(IntervalUnit::MonthDayNano),
        "+l" => DataType::List(only()?),
        "+L" => DataType::LargeList(only()?),
        "+vl" => DataType::ListView(only()?),
        "+vL" => DataType::LargeListView(only()?),
        "+s" => DataType::Struct(fields.clone()),
        "+m" => DataType::Map(only()?, sorted),
        _ => {
            if let Some(unit) = format.strip_prefix("tD") {
                let unit = unit.chars().next().filter(|_| unit.len() == 1).and_then(of_unit);
                return unit.map(DataType::Duration).ok_or_else(unknown);
            }
            let (word, rest) = format.split_once(':').ok_or_else(unknown)?;
            match word {
                "w" => DataType::FixedSizeBinary(number(rest)?),
                "+w" => DataType::FixedSizeList(only()?, number(rest)?),
                "+ud" | "+us" => {
                    let ids = rest.split(',').map(|id| id.parse::<i8>().map_err(|_| unknown()));
                    let ids = ids.collect::<Result<Vec<_>>>()?;
                    let fields = UnionFields::try_new(ids, fields.iter().map(Arc::clone)).map_err(|e| e.to_string())?;
                    DataType::Union(fields, if word == "+ud" { UnionMode::Dense } else { UnionMode::Sparse })
                }
                "d" => of_decimal(rest).ok_or_else(unknown)?,
                _ => {
                    let of = word.strip_prefix("ts").filter(|of| of.len() == 1).and_then(|of| of.chars().next());
                    let of = of.and_then(of_unit).ok_or_else(unknown)?;
                    DataType::Timestamp(of, (!rest.is_empty()).then(|| rest.into()))
                }
            }
        }
    })
}

/// `precision,scale` and, unless it is 128, the width in bits.
fn of_decimal(text: &str) -> Option<DataType> {
    let mut parts = text.split(',');
    let (precision, scale) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(match parts.next() {
        None | Some("128") => DataType::Decimal128(precision, scale),
        Some("32") => DataType::Decimal32(precision, scale),
        Some("64") => DataType::Decimal64(precision, scale),
        Some("256") => DataType::Decimal256(precision, scale),
        Some(_) => return None,
    })
}
