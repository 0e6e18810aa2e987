//! The binary columns: histograms, series, bitmaps, gaps, slow requests.
//!
//! Every blob begins with the version of its format and ends with a checksum, without which a
//! flipped bit would be read as another number. Numbers are LEB128 varints; indices that rise are
//! stored as differences. A decoder takes any bytes: what it does not understand is an
//! [`BlobError`], never a panic and never more memory than the blob's length accounts for.

use record::{Bitmap, Gap, Series, SeriesRow, SlowRequest};
use stats::LatencyHistogram;
use xxhash_rust::xxh3::xxh3_64;

/// The version this program writes, of every format: what [`BARE`] is, and a checksum behind it.
const FORMAT: u8 = 2;
/// Up to schema 14: the same without a checksum.
const BARE: u8 = 1;
/// Bytes of a checksum.
const CHECK: usize = 4;
/// Longest bitmap that is stored as runs: 24 days in ms, 256 MiB when unpacked.
const RUNS_BITS_MAX: u64 = 1 << 31;
/// Most bits that bitmaps stored as runs may have in a run altogether, 49 days in ms: they are the
/// one format in which a few bytes can ask for much memory, and a run may have many of them.
pub const UNPACKED_BITS_MAX: u64 = 1 << 32;
const BITMAP_RAW: u64 = 0;
const BITMAP_RUNS: u64 = 1;

/// Why bytes are not what the column should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// It ends too early.
    #[error("it is cut off")]
    CutOff,
    /// It goes on too long.
    #[error("{0} bytes are left over")]
    LeftOver(usize),
    /// Written by a later program.
    #[error("format {0} is not known, expected at most {FORMAT}")]
    UnknownFormat(u8),
    /// A number makes no sense where it stands.
    #[error("a number is out of range")]
    OutOfRange,
    /// Not the bytes that were written.
    #[error("its checksum is {found:08x}, written was {written:08x}")]
    Changed {
        /// Of the bytes that are there.
        found: u32,
        /// As stored with them.
        written: u32,
    },
    /// Bitmaps that would take more memory than any run needs.
    #[error(
        "its {bits} bits are more than the {left} that are left of a run's {UNPACKED_BITS_MAX}"
    )]
    TooManyBits {
        /// Of this one.
        bits: u64,
        /// What those before it have left.
        left: u64,
    },
}

/// Low 32 bits of XXH3-64.
fn checksum(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Self {
        Self(vec![FORMAT])
    }

    fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    fn length(&mut self, n: usize) {
        self.number(n as u64);
    }

    fn sealed(mut self) -> Vec<u8> {
        self.0.extend(checksum(&self.0).to_le_bytes());
        self.0
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn new(blob: &'a [u8]) -> Result<Self, BlobError> {
        match blob.split_first() {
            None => Err(BlobError::CutOff),
            Some((&BARE, rest)) => Ok(Self(rest)),
            Some((&FORMAT, rest)) => {
                let (rest, written) = rest.split_last_chunk::<CHECK>().ok_or(BlobError::CutOff)?;
                let written = u32::from_le_bytes(*written);
                let found = checksum(&blob[..blob.len() - CHECK]);
                let same = found == written;
                if same { Ok(Self(rest)) } else { Err(BlobError::Changed { found, written }) }
            }
            Some((&other, _)) => Err(BlobError::UnknownFormat(other)),
        }
    }

    fn number(&mut self) -> Result<u64, BlobError> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(BlobError::CutOff)?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(BlobError::OutOfRange);
            }
            n |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(BlobError::OutOfRange)
    }

    fn number_as<T: TryFrom<u64>>(&mut self) -> Result<T, BlobError> {
        T::try_from(self.number()?).map_err(|_| BlobError::OutOfRange)
    }

    /// A count of things that take at least `each` bytes: more than can follow are refused
    /// before anything is allocated for them.
    fn count(&mut self, each: usize) -> Result<usize, BlobError> {
        let n: usize = self.number_as()?;
        if n > self.0.len() / each { Err(BlobError::CutOff) } else { Ok(n) }
    }

    fn end(self) -> Result<(), BlobError> {
        if self.0.is_empty() { Ok(()) } else { Err(BlobError::LeftOver(self.0.len())) }
    }
}

fn write_buckets(w: &mut Writer, buckets: impl ExactSizeIterator<Item = (u64, u64)>) {
    w.length(buckets.len());
    let mut before = 0;
    for (index, count) in buckets {
        w.number(index.wrapping_sub(before));
        w.number(count);
        before = index;
    }
}

/// (index, count) pairs with rising indices and counts whose sum fits in 64 bits.
fn read_buckets(r: &mut Reader) -> Result<Vec<(u64, u64)>, BlobError> {
    let n = r.count(2)?;
    let mut buckets = Vec::with_capacity(n);
    let (mut index, mut total) = (0u64, 0u64);
    for k in 0..n {
        let step = r.number()?;
        if k > 0 && step == 0 {
            return Err(BlobError::OutOfRange);
        }
        index = index.checked_add(step).ok_or(BlobError::OutOfRange)?;
        let count = r.number()?;
        total = total.checked_add(count).ok_or(BlobError::OutOfRange)?;
        buckets.push((index, count));
    }
    Ok(buckets)
}

/// saturated, buckets.
pub fn write_histogram(histogram: &LatencyHistogram) -> Vec<u8> {
    let mut w = Writer::new();
    w.number(histogram.saturated());
    let buckets: Vec<_> = histogram.sparse().map(|(i, n)| (u64::from(i), n)).collect();
    write_buckets(&mut w, buckets.into_iter());
    w.sealed()
}

/// See [`write_histogram`].
pub fn read_histogram(blob: &[u8]) -> Result<LatencyHistogram, BlobError> {
    let mut r = Reader::new(blob)?;
    let saturated = r.number()?;
    let buckets = read_buckets(&mut r)?;
    r.end()?;
    let mut narrow = Vec::with_capacity(buckets.len());
    for (index, count) in buckets {
        narrow.push((u32::try_from(index).map_err(|_| BlobError::OutOfRange)?, count));
    }
    LatencyHistogram::from_sparse(narrow, saturated).ok_or(BlobError::OutOfRange)
}

/// interval in ns, rows; a row is requests, bytes, buckets.
pub fn write_series(series: &Series) -> Vec<u8> {
    let mut w = Writer::new();
    w.number(series.interval_ns);
    w.length(series.rows.len());
    for row in &series.rows {
        w.number(row.requests);
        w.number(row.bytes);
        write_buckets(&mut w, row.tail.iter().map(|&(b, n)| (u64::from(b), n)));
    }
    w.sealed()
}

/// See [`write_series`].
pub fn read_series(blob: &[u8]) -> Result<Series, BlobError> {
    let mut r = Reader::new(blob)?;
    let interval_ns = r.number()?;
    let n = r.count(3)?;
    let mut rows = Vec::with_capacity(n);
    for _ in 0..n {
        let (requests, bytes) = (r.number()?, r.number()?);
        let mut tail = Vec::new();
        for (bucket, count) in read_buckets(&mut r)? {
            tail.push((u16::try_from(bucket).map_err(|_| BlobError::OutOfRange)?, count));
        }
        rows.push(SeriesRow { requests, bytes, tail });
    }
    r.end()?;
    Ok(Series { interval_ns, rows })
}

/// bits, then 0 and the bytes, or 1 and the lengths of the runs, zeros first.
pub fn write_bitmap(map: &Bitmap) -> Vec<u8> {
    let raw_length = map.bits.div_ceil(8) as usize;
    let runs = (map.bits <= RUNS_BITS_MAX).then(|| runs_of(map)).filter(|r| r.len() < raw_length);
    let mut w = Writer::new();
    w.number(map.bits);
    if let Some(runs) = runs {
        w.number(BITMAP_RUNS);
        w.0.extend(runs);
    } else {
        w.number(BITMAP_RAW);
        let known = map.bytes.len().min(raw_length);
        w.0.extend_from_slice(&map.bytes[..known]);
        w.0.resize(w.0.len() + raw_length - known, 0);
    }
    w.sealed()
}

fn runs_of(map: &Bitmap) -> Vec<u8> {
    let mut w = Writer(Vec::new());
    let (mut start, mut value) = (0, false);
    for bit in 0..map.bits {
        if map.get(bit) != value {
            w.number(bit - start);
            (start, value) = (bit, !value);
        }
    }
    w.number(map.bits - start);
    w.0
}

/// See [`write_bitmap`].
///
/// * `left`: how many bits a map that is stored as runs may have; its own are taken off.
pub fn read_bitmap(blob: &[u8], left: &mut u64) -> Result<Bitmap, BlobError> {
    let mut r = Reader::new(blob)?;
    let bits = r.number()?;
    match r.number()? {
        BITMAP_RAW => {
            let length = usize::try_from(bits.div_ceil(8)).map_err(|_| BlobError::OutOfRange)?;
            match r.0.len() {
                n if n < length => Err(BlobError::CutOff),
                n if n > length => Err(BlobError::LeftOver(n - length)),
                _ => Ok(Bitmap { bytes: r.0.to_vec(), bits }),
            }
        }
        BITMAP_RUNS if bits <= RUNS_BITS_MAX => {
            *left = left.checked_sub(bits).ok_or(BlobError::TooManyBits { bits, left: *left })?;
            read_runs(r, bits)
        }
        _ => Err(BlobError::OutOfRange),
    }
}

fn read_runs(mut r: Reader, bits: u64) -> Result<Bitmap, BlobError> {
    let mut ends = Vec::new();
    let mut end = 0u64;
    while !r.0.is_empty() {
        end = end.checked_add(r.number()?).ok_or(BlobError::OutOfRange)?;
        ends.push(end);
    }
    // Checked before the map is allocated.
    if end != bits {
        return Err(BlobError::CutOff);
    }
    let mut map = Bitmap::zeros(bits);
    for pair in ends.windows(2).step_by(2) {
        map.set_all(pair[0]..pair[1]);
    }
    Ok(map)
}

/// how many, then start and length of each.
pub fn write_gaps(gaps: &[Gap]) -> Vec<u8> {
    let mut w = Writer::new();
    w.length(gaps.len());
    for gap in gaps {
        w.number(gap.start_ns);
        w.number(gap.length_ns);
    }
    w.sealed()
}

/// See [`write_gaps`].
pub fn read_gaps(blob: &[u8]) -> Result<Vec<Gap>, BlobError> {
    let mut r = Reader::new(blob)?;
    let n = r.count(2)?;
    let mut gaps = Vec::with_capacity(n);
    for _ in 0..n {
        gaps.push(Gap { start_ns: r.number()?, length_ns: r.number()? });
    }
    r.end()?;
    Ok(gaps)
}

/// how many, then time, latency, worker and offset of each.
pub fn write_slow(slow: &[SlowRequest]) -> Vec<u8> {
    let mut w = Writer::new();
    w.length(slow.len());
    for request in slow {
        w.number(request.at_ns);
        w.number(request.latency_ns);
        w.number(u64::from(request.worker));
        w.number(request.offset);
    }
    w.sealed()
}

/// See [`write_slow`].
pub fn read_slow(blob: &[u8]) -> Result<Vec<SlowRequest>, BlobError> {
    let mut r = Reader::new(blob)?;
    let n = r.count(4)?;
    let mut slow = Vec::with_capacity(n);
    for _ in 0..n {
        slow.push(SlowRequest {
            at_ns: r.number()?,
            latency_ns: r.number()?,
            worker: r.number_as()?,
            offset: r.number()?,
        });
    }
    r.end()?;
    Ok(slow)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Nanos;

    use super::*;

    fn read_any(blob: &[u8]) -> [bool; 5] {
        [
            read_histogram(blob).is_ok(),
            read_series(blob).is_ok(),
            whole_bitmap(blob).is_ok(),
            read_gaps(blob).is_ok(),
            read_slow(blob).is_ok(),
        ]
    }

    fn whole_bitmap(blob: &[u8]) -> Result<Bitmap, BlobError> {
        read_bitmap(blob, &mut UNPACKED_BITS_MAX.clone())
    }

    fn histogram(latencies: &[u64]) -> LatencyHistogram {
        let mut h = LatencyHistogram::new();
        latencies.iter().for_each(|&ns| h.record(Nanos::new(ns)));
        h
    }

    fn bitmap(bits: u64, set: &[u64]) -> Bitmap {
        let mut map = Bitmap::zeros(bits);
        set.iter().for_each(|&bit| map.set(bit));
        map
    }

    fn series(rows: Vec<(u64, u64, std::collections::BTreeMap<u16, u64>)>) -> Series {
        let rows = rows
            .into_iter()
            .map(|(requests, bytes, tail)| SeriesRow {
                requests,
                bytes,
                // The decoder refuses sums above 64 bits, which no counting can reach.
                tail: tail.into_iter().map(|(b, n)| (b, n >> 20)).collect(),
            })
            .collect();
        Series { interval_ns: 100_000_000, rows }
    }

    /// Every proper beginning of a blob is refused, and so is the blob with a byte more.
    fn assert_whole<T>(blob: &[u8], read: impl Fn(&[u8]) -> Result<T, BlobError>) {
        for cut in 0..blob.len() {
            assert!(read(&blob[..cut]).is_err(), "cut at {cut} of {}", blob.len());
        }
        let mut longer = blob.to_vec();
        longer.push(0x80);
        assert!(read(&longer).is_err());
        longer.pop();
        longer[0] = 3;
        assert_eq!(read(&longer).err(), Some(BlobError::UnknownFormat(3)));
        // No bit of it may change, wherever: not one that is a number, either.
        for bit in 0..8 * blob.len() {
            let mut bent = blob.to_vec();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bent).is_err(), "bit {bit} of {}", 8 * blob.len());
        }
        // As it was written before there were checksums.
        let mut bare = blob[..blob.len() - CHECK].to_vec();
        bare[0] = BARE;
        assert!(read(&bare).is_ok());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            latencies in prop::collection::vec(any::<u64>(), 0..200),
            rows in prop::collection::vec(
                (any::<u64>(), any::<u64>(), prop::collection::btree_map(any::<u16>(), any::<u64>(), 0..8)),
                0..20),
            bits in 0u64..5000,
            set in prop::collection::vec(0u64..5000, 0..100),
            gaps in prop::collection::vec((any::<u64>(), any::<u64>()), 0..20),
            slow in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u32>(), any::<u64>()), 0..20),
        ) {
            let h = histogram(&latencies);
            prop_assert_eq!(read_histogram(&write_histogram(&h)), Ok(h));
            let s = series(rows);
            prop_assert_eq!(read_series(&write_series(&s)), Ok(s));
            let map = bitmap(bits, &set);
            prop_assert_eq!(whole_bitmap(&write_bitmap(&map)), Ok(map));
            let gaps: Vec<_> =
                gaps.into_iter().map(|(start_ns, length_ns)| Gap { start_ns, length_ns }).collect();
            prop_assert_eq!(read_gaps(&write_gaps(&gaps)), Ok(gaps));
            let slow: Vec<_> = slow
                .into_iter()
                .map(|(at_ns, latency_ns, worker, offset)| SlowRequest { at_ns, latency_ns, worker, offset })
                .collect();
            prop_assert_eq!(read_slow(&write_slow(&slow)), Ok(slow));
        }

        #[test]
        fn garbage_is_an_error_and_never_a_panic(mut blob in prop::collection::vec(any::<u8>(), 0..300)) {
            read_any(&blob);
            // A checksum would keep it from the decoders.
            if let Some(first) = blob.first_mut() {
                *first = BARE;
            }
            read_any(&blob);
        }

        #[test]
        fn small_garbage_gets_further(mut blob in prop::collection::vec(0u8..6, 0..60)) {
            // A checksum would keep it from the decoders.
            if let Some(first) = blob.first_mut() {
                *first = BARE;
            }
            read_any(&blob);
        }
    }

    #[test]
    fn a_cut_blob_is_refused() {
        assert_whole(&write_histogram(&histogram(&[1, 500, 70_000, 1 << 41])), read_histogram);
        let tail = std::collections::BTreeMap::from([(3, 5 << 20), (900, 1 << 20)]);
        assert_whole(&write_series(&series(vec![(6, 24576, tail); 3])), read_series);
        // Runs, then raw.
        assert_whole(&write_bitmap(&bitmap(1000, &[500])), whole_bitmap);
        assert_whole(&write_bitmap(&bitmap(20, &[1, 3, 5, 7, 9, 11])), whole_bitmap);
        assert_whole(&write_gaps(&[Gap { start_ns: 7, length_ns: 300 }; 3]), read_gaps);
        let slow = SlowRequest { at_ns: 1, latency_ns: 200_000_000, worker: 3, offset: 4096 };
        assert_whole(&write_slow(&[slow; 2]), read_slow);
    }

    #[test]
    fn a_few_bytes_cannot_ask_for_much_memory() {
        let of = |numbers: &[u64]| {
            let mut w = Writer::new();
            numbers.iter().for_each(|&n| w.number(n));
            w.sealed()
        };
        let endless = of(&[1 << 60, BITMAP_RUNS, 1 << 60]);
        assert_eq!(whole_bitmap(&endless), Err(BlobError::OutOfRange));
        assert!(read_any(&of(&[u64::MAX])).iter().all(|ok| !ok));
        // Nor can many of them together.
        let hour = of(&[3_600_000, BITMAP_RUNS, 3_600_000]);
        let mut left = 2 * 3_600_000;
        assert!(read_bitmap(&hour, &mut left).is_ok() && read_bitmap(&hour, &mut left).is_ok());
        let refused = read_bitmap(&hour, &mut left);
        assert_eq!(refused, Err(BlobError::TooManyBits { bits: 3_600_000, left: 0 }));
    }

    #[test]
    fn a_busy_device_has_a_small_bitmap() {
        let mut map = Bitmap::zeros(10_000);
        (0..10_000).filter(|&ms| ms != 5_000).for_each(|ms| map.set(ms));
        assert!(write_bitmap(&map).len() < 16 + CHECK);
    }
}
