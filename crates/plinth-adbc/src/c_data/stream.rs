//! Streams of batches as `ArrowArrayStream`, there and back.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{CArray, CSchema, CStream, Result};

/// The error number of a stream that failed: that of input and output.
const EIO: c_int = 5;
/// That of a stream that was asked to stop.
const ECANCELED: c_int = if cfg!(target_os = "macos") { 89 } else { 125 };
/// That of an argument that is none.
const EINVAL: c_int = 22;

/// What gives the batches of a stream: the next one, the end, or an error that is its last.
pub type Next = Box<dyn FnMut() -> Result<Option<RecordBatch>> + Send>;

struct Private {
    schema: SchemaRef,
    next: Next,
    error: CString,
    kept: Option<Kept>,
}

/// What a stream keeps as long as it is not released.
pub struct Kept {
    /// What [`kept_by`] finds.
    pub value: Box<dyn Any + Send>,
    /// Whether what ended the stream was a request to stop.
    pub cancelled: Box<dyn Fn() -> bool + Send>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

/// A stream for a consumer of C.
pub fn export(schema: SchemaRef, next: Next) -> CStream {
    export_with(schema, next, None)
}

/// The same, with something that [`kept_by`] finds as long as the stream is not released.
pub fn export_with(schema: SchemaRef, next: Next, kept: Option<Kept>) -> CStream {
    let private = Box::new(Private { schema, next, error: CString::default(), kept });
    CStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(private).cast(),
    }
}

/// Does one call of a consumer: nothing unwinds into C.
///
/// # Safety
/// `stream` is one of [`export`] that is not released, and `out` is a place for a structure.
unsafe fn call<T>(stream: *mut CStream, out: *mut T, work: impl FnOnce(&mut Private) -> Result<T>) -> c_int {
    // SAFETY: as the caller promises.
    let private = unsafe { &mut *(*stream).private_data.cast::<Private>() };
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(private)));
    match done.unwrap_or_else(|_| Err("the stream was given up: see above".to_owned())) {
        Ok(value) => {
            // SAFETY: as the caller promises; what is there is no structure yet.
            unsafe { out.write(value) };
            0
        }
        Err(error) => {
            private.error = CString::new(error.replace('\0', "\\0")).unwrap_or_default();
            if private.kept.as_ref().is_some_and(|kept| (kept.cancelled)()) { ECANCELED } else { EIO }
        }
    }
}

unsafe extern "C" fn get_schema(stream: *mut CStream, out: *mut CSchema) -> c_int {
    // SAFETY: what the interface asks of consumers.
    unsafe { call(stream, out, |private| CSchema::of_schema(&private.schema)) }
}

unsafe extern "C" fn get_next(stream: *mut CStream, out: *mut CArray) -> c_int {
    let work = |private: &mut Private| match (private.next)()? {
        Some(batch) => CArray::of_batch(batch),
        // The end.
        None => Ok(CArray::empty()),
    };
    // SAFETY: what the interface asks of consumers.
    unsafe { call(stream, out, work) }
}

unsafe extern "C" fn get_last_error(stream: *mut CStream) -> *const c_char {
    // SAFETY: what the interface asks of consumers.
    let private = unsafe { &*(*stream).private_data.cast::<Private>() };
    if private.error.is_empty() { null() } else { private.error.as_ptr() }
}

unsafe extern "C" fn release(stream: *mut CStream) {
    // SAFETY: what the interface asks of consumers; it was made of such a box.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Private>()));
        (*stream).private_data = null_mut();
        (*stream).release = None;
    }
}

/// What a stream was given to keep; none if it is another's.
///
/// # Safety
/// `stream` is null, or leads to a stream that lives as long as the result is used.
pub unsafe fn kept_by<'a, T: Any>(stream: *const CStream) -> Option<&'a T> {
    // SAFETY: as the caller promises.
    let stream = unsafe { stream.as_ref() }?;
    let ours = stream.release.is_some_and(|of| std::ptr::fn_addr_eq(of, release as unsafe extern "C" fn(*mut CStream)));
    if !ours {
        return None;
    }
    // SAFETY: it was made of such a box.
    let private = unsafe { stream.private_data.cast::<Private>().as_ref() }?;
    private.kept.as_ref()?.value.downcast_ref()
}

/// The batches of another's stream.
#[derive(Debug)]
pub struct Reader {
    stream: CStream,
    schema: SchemaRef,
}

impl Reader {
    /// Asks a stream for its columns. Whatever made it keeps to the interface, which is what its capsule promises.
    ///
    /// # Errors
    /// If it was read before, or what the producer says.
    pub fn new(mut stream: CStream) -> Result<Self> {
        if stream.is_released() {
            return Err("the stream was read before, and gives its rows once".to_owned());
        }
        let Some(get_schema) = stream.get_schema else { return Err("the stream has no schema".to_owned()) };
        let mut schema = CSchema::empty();
        // SAFETY: a stream that is not released, and a place for a schema.
        let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
        if code != 0 {
            return Err(error_of(&mut stream, code));
        }
        let schema = Arc::new(schema.to_schema()?);
        Ok(Self { stream, schema })
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next rows; none after the last.
    ///
    /// # Errors
    /// What the producer says, or what is wrong with its data.
    #[allow(clippy::should_implement_trait, reason = "it fails")]
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(get_next) = self.stream.get_next else { return Ok(None) };
        let mut array = CArray::empty();
        // SAFETY: the stream is as the interface has it.
        let code = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        if code != 0 {
            return Err(error_of(&mut self.stream, code));
        }
        if array.is_released() {
            return Ok(None);
        }
        // SAFETY: it is of the stream's schema.
        unsafe { array.into_batch(&self.schema) }.map(Some)
    }
}

/// What a stream says of its last error.
fn error_of(stream: &mut CStream, code: c_int) -> String {
    let told = stream.get_last_error.map(|get| {
        // SAFETY: the stream is not released, and its last call failed.
        unsafe { get(&raw mut *stream) }
    });
    match told.filter(|told| !told.is_null()) {
        // SAFETY: a text that ends with a zero and lives until the next call.
        Some(told) => unsafe { CStr::from_ptr(told) }.to_string_lossy().into_owned(),
        None if code == EINVAL => "the stream refused to be read".to_owned(),
        None => format!("the stream failed with error {code}"),
    }
}
