//! How an engine reads, and what suits a device.

/// Which way reads go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoMode {
    /// From the page cache what is there; the rest past it by a ring, or through it if the scan fits in memory.
    #[default]
    Auto,
    /// Past the page cache, by a ring.
    Uring,
    /// Past the page cache, by threads that wait.
    Direct,
    /// Through the page cache.
    Cached,
}

/// How an engine works.
#[derive(Clone, Debug)]
pub struct IoOptions {
    /// Which way reads go (default auto).
    pub mode: IoMode,
    /// Bytes of one request to the device (default 256 KiB); longer reads are several.
    pub request_bytes: usize,
    /// Requests to the device at once (default 64).
    pub depth: usize,
    /// Bytes that reading ahead may take (default: a quarter of the budget).
    pub arena_bytes: Option<u64>,
    /// Whether memory for reads is asked for in huge pages (default yes).
    pub huge_pages: bool,
    /// Whether that memory is registered with the ring (default yes).
    pub registered: bool,
    /// Whether each read gets memory of its own instead, as a measure of what sharing brings (default no).
    pub fresh_buffers: bool,
}

/// What a study of a device tells readers: the cheapest requests that reach 90 % of its bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceKnee {
    /// Bytes of a request.
    pub request_bytes: u64,
    /// Requests in flight.
    pub depth: u64,
    /// Whether the device was measured, and not a cache or other load.
    pub trusted: bool,
}

impl Default for IoOptions {
    fn default() -> Self {
        Self {
            mode: IoMode::Auto,
            request_bytes: 256 << 10,
            depth: 64,
            arena_bytes: None,
            huge_pages: true,
            registered: true,
            fresh_buffers: false,
        }
    }
}

impl IoOptions {
    /// Requests of the size that suits a device, and as many at once as keep it busy.
    ///
    /// A knee that is not trusted changes nothing. It is where 90 % of the bandwidth is reached; twice as many requests are for
    /// the rest.
    #[must_use]
    pub fn suited_to(mut self, knee: &DeviceKnee) -> Self {
        if knee.trusted {
            let within =
                |value: u64, least: usize, most: usize| usize::try_from(value).unwrap_or(most).clamp(least, most);
            self.request_bytes = within(knee.request_bytes, 64 << 10, 2 << 20);
            self.depth = within(knee.depth.saturating_mul(2), 8, 256);
        }
        self
    }
}
