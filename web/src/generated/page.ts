// Made from schema/plimsoll.page-1.schema.json by `npm run types`; do not edit.

/**
 * What ends the rate of a cell.
 */
export type Term = "iops" | "bandwidth" | "latency" | "mixed";
/**
 * Whether the load generator itself is the limit.
 */
export type Generator =
  | {
      "near-null": {
        /**
         * Requests per second against a null target.
         */
        null_rate: number;
      };
    }
  | {
      busy: {
        /**
         * The busiest worker's share of the time, or that of all processors if more.
         */
        share: number;
      };
    }
  | {
      "ruled-out": {
        /**
         * Requests per second against a null target.
         */
        null_rate: number;
      };
    }
  | "unknown";
/**
 * Why there is no fit.
 */
export type NoFit = "too-few-cells" | "too-few-block-sizes" | "one-load";
/**
 * A layer.
 */
export type Place =
  | "above"
  | {
      devices: {
        /**
         * Distance.
         */
        depth: number;
        /**
         * Kernel names.
         */
        devices: string[];
        /**
         * There are others below.
         */
        has_members: boolean;
      };
    };
/**
 * Whose fault a gap was, as far as the evidence goes.
 */
export type Source = "host" | "device" | "above-block-layer" | "unknown";
/**
 * How bad a gap is.
 */
export type Tier = "hiccup" | "stall" | "freeze";
/**
 * What a number is in.
 */
export type Quantity =
  | "iops"
  | "bytes-per-second"
  | "bytes"
  | "seconds"
  | "share"
  | "reach"
  | "ratio"
  | "change"
  | "times"
  | "chance"
  | "exponent"
  | "plain";
/**
 * What is known of a load line.
 */
export type Standing =
  "line" | "not-converged" | "none" | "above" | "between" | "carried" | "not-carried" | "cannot-tell";
/**
 * What a layer is.
 */
export type What =
  | (FileSystem & {
      is: "file-system";
    })
  | (Mapper & {
      is: "mapper";
    })
  | (Md & {
      is: "md";
    })
  | (Partition & {
      is: "partition";
    })
  | (LoopDevice & {
      is: "loop";
    })
  | (Disk & {
      is: "disk";
    })
  | (Controller & {
      is: "controller";
    })
  | {
      is: "memory";
      /**
       * Which.
       */
      name: string;
    };
/**
 * Whether a series is steady.
 */
export type Verdict2 = "steady" | "not-enough-written" | "too-few-rounds" | "not-steady" | "few-requests" | "unknown";
/**
 * What findings answer, in the order in which people ask.
 */
export type Question =
  | "answer"
  | "run"
  | "confidence"
  | "stalls"
  | "caches"
  | "gaps"
  | "limits"
  | "members"
  | "interference"
  | "drift"
  | "steady"
  | "waits"
  | "differences"
  | "elasticity"
  | "factors"
  | "spread"
  | "history"
  | "group"
  | "comparison"
  | "calibration"
  | "advice";
/**
 * How much a finding matters. Greater is worse.
 */
export type Severity = "good" | "unknown" | "info" | "warning" | "failure";
/**
 * What may be said.
 */
export type Verdict3 = "different" | "same" | "inconclusive";

/**
 * Runs with what they mean, to be drawn. Bytes and ns are integers unless they are means.
 */
export interface Page {
  /**
   * Every other run against the first of its suite; the only one of its suite against the first of
   * all.
   */
  against: PageAgainst[];
  /**
   * Version of the program that made the page.
   */
  program: string;
  /**
   * In the order given; the first of each suite is its baseline unless somebody chooses another.
   */
  runs: PageRun[];
  /**
   * Always `plimsoll.page/1`.
   */
  schema: "plimsoll.page/1";
  /**
   * What the runs say together; empty for one.
   */
  together: Verdict[];
  /**
   * Which of the places a database should run on; null unless all runs are what `plimsoll which`
   * plays.
   */
  which: PageWhich | null;
}
/**
 * A run against its baseline.
 */
export interface PageAgainst {
  /**
   * Cell by cell.
   */
  cells: CellHeld[];
  /**
   * What differs between the two stacks and plans.
   */
  differences: string[];
  /**
   * What the verdict rests on.
   */
  evidence: string[];
  /**
   * Cells that are faster for sure.
   */
  faster: number;
  /**
   * The verdict in a sentence.
   */
  headline: string;
  overall: Held;
  /**
   * That stream, where streams are unlike.
   */
  overall_of: string | null;
  /**
   * The one it is held against.
   */
  reference: string;
  /**
   * The run.
   */
  run: string;
  /**
   * Cells that are slower for sure.
   */
  slower: number;
  /**
   * `different`, `same` or `inconclusive`.
   */
  verdict: string;
}
/**
 * A cell of two runs.
 */
export interface CellHeld {
  /**
   * Its key in this run.
   */
  cell: string | null;
  held: Held;
  /**
   * As people say it.
   */
  name: string;
  /**
   * Its key in the reference.
   */
  reference: string | null;
}
/**
 * Two rates held against each other.
 */
export interface Held {
  /**
   * Upper end.
   */
  high: number | null;
  /**
   * Lower end of its interval.
   */
  low: number | null;
  /**
   * Differences up to this share do not matter.
   */
  margin: number;
  /**
   * Chance of such a difference if there were none.
   */
  p: number | null;
  /**
   * This run's rate by the reference's.
   */
  ratio: number | null;
  /**
   * `faster`, `slower`, `different`, `same`, `inconclusive` or `not comparable`: a cache answered.
   */
  verdict: string;
}
/**
 * A run.
 */
export interface PageRun {
  /**
   * Why the suite is, in a sentence; empty where it does not say.
   */
  about: string;
  /**
   * Where the rate ends, phase by phase.
   */
  barriers: Barrier[];
  /**
   * One element per grid cell and stream, in the suite's order.
   */
  cells: PageCell[];
  /**
   * Where rates changed their level.
   */
  changes: Change[];
  /**
   * The words of the command.
   */
  command_line: string[];
  /**
   * Gaps of the whole device.
   */
  freezes: Freeze[];
  /**
   * Its id in its store.
   */
  id: string;
  /**
   * Where it came from, if another tool made it. Then texts that the tool did not tell are
   * empty in this document, and sizes and the seed 0.
   */
  imported: Imported | null;
  /**
   * Of a run that looked for a load line.
   */
  line: PageLine | null;
  machine: Machine;
  /**
   * Its place in a list of suites; null if it was not played as part of one.
   */
  part: PartOf | null;
  /**
   * Version of the program that measured.
   */
  program: string;
  /**
   * Where all randomness came from: a number, as text since it may have 64 bits.
   */
  seed: string;
  /**
   * Everything below the targets that could be seen, layer by layer; null in imported runs, of
   * twins, and in runs of versions that did not look.
   */
  stack: StackTree | null;
  /**
   * Wall clock at the start, ns since 1970; null where the tool of an imported run does not
   * tell.
   */
  started_unix_ns: number | null;
  /**
   * How it stands, in the word of all heads: `running`, `complete`, `out of time`,
   * `interrupted`, `failed` or `killed`.
   */
  state: string;
  steady: SteadyStates;
  /**
   * The suite's name.
   */
  suite: string;
  /**
   * The suite as it was played, with every default written out: TOML.
   */
  suite_text: string;
  target: Target;
  /**
   * Each of several targets by itself; empty where there is one.
   */
  targets: Target[];
  /**
   * What each stream has beside all others, where each was played alone, too.
   */
  together: PageTogether[];
  /**
   * What it means.
   */
  verdicts: Verdict[];
  /**
   * How many visits the plan has.
   */
  visits_planned: number;
  /**
   * Doubts about the run as a whole; those about a visit are with the visit.
   */
  warnings: Warning[];
}
/**
 * Where the rate of one phase ends.
 */
export interface Barrier {
  /**
   * `W`: bytes per second.
   */
  bandwidth: Cap | null;
  /**
   * Which limit binds in each cell.
   */
  bound: BoundCell[];
  /**
   * Cells that are in none of this: far fewer were in flight than asked for.
   */
  few_in_flight: number;
  /**
   * Cells that are in none of this: too few requests for so many in flight.
   */
  few_requests: number;
  /**
   * The fitted law; `None` where there is none, or where it does not describe the grid.
   */
  fit: Fit | null;
  /**
   * Without a ladder: what the most in flight add, of block sizes with three numbers in flight whose
   * visits differ too much to tell.
   */
  gains: Gain[];
  generator: Generator;
  /**
   * The phase, and its other axes.
   */
  group: string;
  /**
   * `A`: requests per second.
   */
  iops: Cap | null;
  /**
   * `b* = W/A`: block size from which bandwidth is the limit.
   */
  knee_bytes: number | null;
  /**
   * `n* = A t(b)` at the smallest block size from 4 KiB on: requests in flight from which more
   * do not help.
   */
  knee_in_flight: number | null;
  /**
   * Without a fit: what each block size says by itself.
   */
  ladders: Ladder[];
  /**
   * Why there is none.
   */
  no_fit: NoFit | null;
  /**
   * All requests came one at a time: then nothing but the time of a request limits.
   */
  one_at_a_time: OneAtATime | null;
  /**
   * All cells had the same number of requests in flight, more than one: whether more would raise the rate
   * does not show.
   */
  one_number: OneNumber | null;
  /**
   * `read`, `write`, ...
   */
  op: string;
  /**
   * The suite sets a rate or pauses in every cell, so no limit shows.
   */
  paced: boolean;
  queue: QueueVerdict;
  /**
   * Where more in flight gives less.
   */
  retrograde: Retrograde[];
  /**
   * One in flight is already at the limits: requests are served one at a time.
   */
  serial: boolean;
  /**
   * Mean error of a fit that was withheld for it.
   */
  withheld: number | null;
}
/**
 * A cap of the law.
 */
export interface Cap {
  /**
   * Block sizes of those cells.
   */
  block_sizes: number;
  /**
   * Cells within 5 % of it.
   */
  cells: number;
  /**
   * The highest of a cell.
   */
  highest: number;
  /**
   * What that cell makes at least, as far as noise lets tell (97.5 % on this side): a cap that was
   * not reached is above it.
   */
  highest_low: number;
  rate: Ranged;
  /**
   * It was reached, not only extrapolated.
   */
  reached: boolean;
}
/**
 * A number with its 95 % interval.
 */
export interface Ranged {
  /**
   * Upper end.
   */
  high: number;
  /**
   * Lower end.
   */
  low: number;
  /**
   * The number.
   */
  value: number;
}
/**
 * What ends a cell's rate.
 */
export interface BoundCell {
  /**
   * Bytes per request.
   */
  block_bytes: number;
  /**
   * Requests in flight.
   */
  in_flight: number;
  term: Term;
}
/**
 * A fit with its errors.
 */
export interface Fit {
  bandwidth: Ranged;
  /**
   * The largest of those.
   */
  error_max: number;
  /**
   * Mean of |ln(measured by law)| over the points that counted: 0.01 is 1 %.
   */
  error_mean: number;
  /**
   * Intervals are from visits drawn again; otherwise, without visits, from how far the points
   * are from the law.
   */
  from_visits: boolean;
  iops: Ranged;
  law: Law;
  /**
   * How many points counted.
   */
  points: number;
}
/**
 * The fitted law.
 */
export interface Law {
  /**
   * `W`: bytes per second end here.
   */
  bandwidth: number;
  /**
   * `A`: requests per second end here.
   */
  iops: number;
  /**
   * `t0`: fixed part of one request alone, seconds.
   */
  latency_seconds: number;
  /**
   * `w`: bytes per second of one request alone, beside the fixed part.
   */
  request_bandwidth: number;
  /**
   * `p`: how sharp the corners are, 1 to 16.
   */
  sharpness: number;
}
/**
 * What the most in flight add to the next fewer, where that is too uncertain for a [`Ladder`].
 */
export interface Gain {
  /**
   * Bytes per request.
   */
  block_bytes: number;
  /**
   * Fewer requests in flight.
   */
  from: number;
  ratio: Ranged;
  /**
   * The most.
   */
  to: number;
}
/**
 * Whether more in flight still add to the rate, at one block size.
 */
export interface Ladder {
  /**
   * Bytes per request.
   */
  block_bytes: number;
  /**
   * From so many in flight on it is reached: twice as many and more add less than 5 %. `None` where
   * it still rises with the most in flight.
   */
  from: number | null;
  /**
   * The most requests in flight.
   */
  most: number;
  /**
   * Where it still rises, but next to nothing: what the most add, mostly waiting.
   */
  nearly: Gain | null;
  rate: Ranged;
}
/**
 * How long requests take that come one at a time.
 */
export interface OneAtATime {
  /**
   * The largest, likewise.
   *
   * @minItems 2
   * @maxItems 2
   */
  largest: [number, number];
  /**
   * The smallest block size, and the seconds that one takes.
   *
   * @minItems 2
   * @maxItems 2
   */
  smallest: [number, number];
}
/**
 * How long requests take where as many are in flight all the time.
 */
export interface OneNumber {
  /**
   * How many.
   */
  in_flight: number;
  /**
   * The largest, likewise.
   *
   * @minItems 2
   * @maxItems 2
   */
  largest: [number, number];
  /**
   * The smallest block size, and the seconds that one takes.
   *
   * @minItems 2
   * @maxItems 2
   */
  smallest: [number, number];
}
/**
 * Where the queue is.
 */
export interface QueueVerdict {
  /**
   * Where no single layer has it: what waits where, by block size. Two limits in two layers look
   * like this, as of requests in one and of bytes in another.
   */
  by_block: BlockQueue[];
  /**
   * Every cell that has counters.
   */
  cells: QueueCell[];
  /**
   * Fewest and most in flight that were compared.
   *
   * @minItems 2
   * @maxItems 2
   */
  compared: [number, number] | null;
  /**
   * Of a run on the write-optimising layer, where the queue is above the devices: blocks that its
   * collector copied for each that was written.
   */
  copied?: number | null;
  /**
   * Requests in flight by rate times time are off by more than 5 % in these cells (block size,
   * asked, seen): think time, an open loop, or a broken measurement.
   */
  off: [number, number, number][];
  /**
   * In all of those the visits are too short for so many in flight: that alone explains it.
   */
  off_by_ends: boolean;
  /**
   * No device has it; but what waits above them in an open loop cannot be told from what waits for
   * its turn.
   */
  open_loop: boolean;
  /**
   * The layer in which most of the waiting is that was added with what was added in flight;
   * `None` if none has it, nothing waits, or nobody counted.
   */
  place: Place | null;
  /**
   * Its share of that waiting; with one number in flight, of all that was in flight.
   */
  share: number;
}
/**
 * Where requests of one block size wait.
 */
export interface BlockQueue {
  /**
   * Bytes per request.
   */
  block_bytes: number;
  /**
   * Places with a tenth of the added waiting and more, the largest first.
   */
  shares: PlaceShare[];
}
/**
 * How much of the waiting that was added is in one place.
 */
export interface PlaceShare {
  place: Place;
  /**
   * Of the added waiting.
   */
  share: number;
}
/**
 * What waited where in one cell.
 */
export interface QueueCell {
  /**
   * Of those, above all block devices.
   */
  above: number;
  /**
   * Bytes per request.
   */
  block_bytes: number;
  /**
   * Requests in flight that were asked for.
   */
  in_flight: number;
  /**
   * From the top down; empty where the kernel counts nothing.
   */
  layers: LayerQueue[];
  /**
   * Requests in flight that the measuring loop saw: rate times mean time. Of an open loop that time
   * counts from when a request was due, so what waited for its turn is in it: there it is at most
   * what may be in flight.
   */
  seen: number;
}
/**
 * What waited in the block devices at one distance from the target.
 */
export interface LayerQueue {
  /**
   * Distance from the target: 0 is right under the file system.
   */
  depth: number;
  /**
   * Kernel names.
   */
  devices: string[];
  /**
   * Requests in them alone.
   */
  own: number;
  /**
   * Requests in them and below, on average.
   */
  within: number;
}
/**
 * A fall of the rate with more in flight.
 */
export interface Retrograde {
  /**
   * Bytes per request.
   */
  block_bytes: number;
  /**
   * Fewer requests in flight.
   */
  from: number;
  /**
   * Rate with more by rate with fewer.
   */
  ratio: number;
  /**
   * More.
   */
  to: number;
}
/**
 * A grid cell's stream.
 */
export interface PageCell {
  /**
   * Bands of latency that the visits' heat is counted in, quarters of an octave: (from, to).
   */
  bands: [number, number][];
  /**
   * What the interval is from: `visits` or `one-visit`.
   */
  basis: string | null;
  /**
   * Bytes per request, if all are alike.
   */
  block_bytes: number | null;
  /**
   * Bytes per second.
   */
  bytes_per_s: number | null;
  /**
   * What was done to caches before every visit, in this order: `flush`, `purge`, `drop`,
   * `reopen`, `remount`.
   */
  caches: string[];
  /**
   * Its place on the grid's axes.
   */
  coordinates: Coordinate[];
  cpu_ns_per_io: CpuPerIo;
  /**
   * Failed.
   */
  errors: number;
  /**
   * (wait, chance that a request arriving at a random moment waits longer).
   */
  exposure: [number, number][];
  /**
   * What makes durable what it writes, each kind apart; empty where nothing does.
   */
  flushes: PageFlush[];
  /**
   * Latencies in eighths of an octave, or as another tool binned them: (from, to, how many).
   */
  histogram: [number, number, number][];
  /**
   * The rate that tables print: that of the interval where there is one.
   */
  iops: number | null;
  /**
   * Upper end.
   */
  iops_high: number | null;
  /**
   * Lower end of its 95 % interval.
   */
  iops_low: number | null;
  /**
   * Bytes that every visit is to move, where nothing else ends it: then the time that they take
   * is a figure, too.
   */
  job_bytes: number | null;
  /**
   * Unique in the run: the cell's index and the stream's position, `12.0`.
   */
  key: string;
  latency_ns: Latency;
  /**
   * Reasons to look twice.
   */
  marks: PageMark[];
  /**
   * As people say it.
   */
  name: string;
  /**
   * `read`, `write`, ...; `mixed` when several data operations are in it.
   */
  op: string;
  /**
   * Its phase.
   */
  phase: string;
  /**
   * Whether the phase only prepares what is measured.
   */
  preparation: boolean;
  /**
   * (share, latency that so many did not exceed), shares rising.
   */
  quantiles: [number, number][];
  /**
   * Requests in flight per worker, likewise.
   */
  queue_depth: number | null;
  /**
   * The part of the files that its requests go to; null where nobody tells.
   */
  region_bytes: number | null;
  /**
   * Completed; null where another tool did not count.
   */
  requests: number | null;
  /**
   * The stream's name.
   */
  stream: string;
  /**
   * How many streams the cell has.
   */
  streams: number;
  /**
   * Workers; null where the tool of an imported run does not tell.
   */
  threads: number | null;
  /**
   * Every visit, also those not counted.
   */
  visits: PageVisit[];
}
/**
 * A cell's place on an axis of its grid.
 */
export interface Coordinate {
  /**
   * The field varied, as in the suite.
   */
  field: string;
  /**
   * Its value here, as in the suite.
   */
  value: string;
}
/**
 * CPU time per completed request, ns.
 */
export interface CpuPerIo {
  /**
   * In the kernel.
   */
  system: number | null;
  /**
   * In user mode.
   */
  user: number | null;
}
/**
 * One kind of flush beside data requests. Whoever waits for a commit waits for both.
 */
export interface PageFlush {
  latency_ns: Latency;
  /**
   * `fsync`, `fdatasync`, `sync-range`.
   */
  op: string;
  /**
   * (share, latency that so many did not exceed), shares rising.
   */
  quantiles: [number, number][];
  /**
   * Completed; null where another tool did not count.
   */
  requests: number | null;
}
/**
 * Latency in ns. Percentiles are at most 0.4 % off and null unless at least ten values lie
 * above them; mean and max are exact. In imported runs all are as the tool printed them.
 */
export interface Latency {
  /**
   * Exact longest.
   */
  max: number | null;
  /**
   * Exact mean.
   */
  mean: number | null;
  /**
   * Exact shortest.
   */
  min: number | null;
  /**
   * Median.
   */
  p50: number | null;
  /**
   * 90 % did not take longer.
   */
  p90: number | null;
  /**
   * 99 % did not take longer.
   */
  p99: number | null;
  /**
   * 99.9 % did not take longer.
   */
  p999: number | null;
}
/**
 * A reason to look twice.
 */
export interface PageMark {
  /**
   * For programs.
   */
  code: string;
  /**
   * What was seen.
   */
  evidence: string[];
  /**
   * What it stands for; empty where the code says it all.
   */
  meaning: string;
}
/**
 * One stay in a cell.
 */
export interface PageVisit {
  /**
   * Moved.
   */
  bytes: number | null;
  /**
   * Bytes per second.
   */
  bytes_per_s: number | null;
  /**
   * Whether it counts in the cell's figures.
   */
  counted: boolean;
  /**
   * Measured part.
   */
  elapsed_ns: number | null;
  /**
   * `complete`, `interrupted`, `failed` or `hanging`; `pilot` where it was made to learn.
   */
  end: string;
  /**
   * Times of 50 ms and more in which no stream completed anything.
   */
  gaps: Gap[];
  /**
   * How long requests took at every time; null where nobody counted that.
   */
  heat: PageHeat | null;
  /**
   * Moments when the whole process did not run.
   */
  host_stalls: Gap[];
  /**
   * Completed requests per second.
   */
  iops: number | null;
  /**
   * Exact longest.
   */
  max_ns: number | null;
  /**
   * How many visits of the run came before.
   */
  order: number;
  /**
   * Median latency.
   */
  p50_ns: number | null;
  /**
   * 99 % did not take longer.
   */
  p99_ns: number | null;
  /**
   * Time before it that was not counted.
   */
  ramp_ns: number;
  /**
   * How many visits of the cell came before.
   */
  repeat: number;
  /**
   * Its course; null where there is none.
   */
  series: PageSeries | null;
  /**
   * Since the first visit's measured part began; null where nobody tells.
   */
  start_ns: number | null;
  /**
   * Doubts about it.
   */
  warnings: Warning[];
  /**
   * Of those, written.
   */
  written: number | null;
}
/**
 * A time in which nothing happened.
 */
export interface Gap {
  /**
   * How long.
   */
  length_ns: number;
  /**
   * Since the start of the measured part.
   */
  start_ns: number;
}
/**
 * Latencies over time: column `k` has what completed in `k * step_ns ..`.
 */
export interface PageHeat {
  /**
   * (index of the band in the cell's `bands`, how many requests), bands rising; every request is
   * in one.
   */
  columns: [number, number][][];
  /**
   * Length of a column.
   */
  step_ns: number;
}
/**
 * Rate and tail over time, thinned out for drawing: point `k` is about `k * step_ns ..`.
 */
export interface PageSeries {
  /**
   * The fastest, likewise.
   */
  high: number[];
  /**
   * The slowest interval of each point; empty where a point is one interval.
   */
  low: number[];
  /**
   * Bound on the longest latency, at most 10 % above it; null when nothing completed.
   */
  max_ns: (number | null)[];
  /**
   * How many measured intervals a point stands for.
   */
  merged: number;
  /**
   * 99th percentile of latency, at most 5 % off; null unless ten values lie above it.
   */
  p99_ns: (number | null)[];
  /**
   * Requests per second, five digits.
   */
  rate: number[];
  /**
   * Length of a point.
   */
  step_ns: number;
}
/**
 * A doubt about a result.
 */
export interface Warning {
  /**
   * For programs.
   */
  code: string;
  /**
   * For people.
   */
  text: string;
}
/**
 * A change of level.
 */
export interface Change {
  /**
   * After; the ratio for what cells share.
   */
  after: number;
  /**
   * Within the visit, or else since the run began.
   */
  at_ns: number;
  /**
   * Requests per second before; 1 for what cells share.
   */
  before: number;
  /**
   * Key of the cell; null for what all cells share.
   */
  cell: string | null;
  /**
   * The visit within which it is; null for changes from visit to visit.
   */
  order: number | null;
}
/**
 * A gap of the whole device.
 */
export interface Freeze {
  /**
   * It had not ended when the visit did: it was longer.
   */
  at_least: boolean;
  /**
   * Index of the cell.
   */
  cell: number;
  /**
   * The cell as people say it.
   */
  cell_name: string;
  /**
   * Why that is said.
   */
  evidence: string;
  /**
   * How long; to 1 ms.
   */
  length_ns: number;
  /**
   * One request was in flight, since the cell has no more at a time or the others of a burst were back:
   * nobody can tell whether the device stood still or that request was late.
   */
  one_at_a_time: boolean;
  /**
   * Which visit of the run, from 0.
   */
  order: number;
  /**
   * Which visit of the cell, from 0.
   */
  repeat: number;
  /**
   * Times are those of a simulated device: nothing else happened at this moment of the day.
   */
  simulated_clock: boolean;
  /**
   * Since the end of the last visit that wrote, fill and ramps included; 0 in a visit that
   * writes, `None` when nothing had been written.
   */
  since_write_ns: number | null;
  source: Source;
  /**
   * Since the start of the run.
   */
  start_in_run_ns: number;
  /**
   * Since the start of the visit's measured part; to 1 ms.
   */
  start_ns: number;
  /**
   * Wall clock, ns since 1970; by a simulated device's own clock, which began with the run,
   * where `simulated_clock` says so.
   */
  start_unix_ns: number;
  tier: Tier;
  /**
   * Workers it held up.
   */
  workers: number;
  /**
   * Of so many; 0 when the record does not say.
   */
  workers_all: number;
}
/**
 * Where a run came from that another tool made.
 */
export interface Imported {
  /**
   * Bytes of that file.
   */
  bytes: number;
  /**
   * The file it was read from.
   */
  file: string;
  /**
   * What a reader of the figures has to know.
   */
  remarks: string[];
  /**
   * How the tool says it was set, and what it says besides.
   */
  settings: Setting2[];
  /**
   * The tool: `fio`, `bm-flash`.
   */
  tool: string;
  /**
   * Its version.
   */
  version: string | null;
  /**
   * XXH3 of those bytes, 16 hex digits.
   */
  xxh3: string;
}
/**
 * A setting of another tool.
 */
export interface Setting2 {
  /**
   * As the tool names it.
   */
  name: string;
  /**
   * As it prints it.
   */
  value: string;
}
/**
 * A load line, and what it was found from.
 */
export interface PageLine {
  /**
   * A backlog grows from between these.
   */
  capacity: Number | null;
  /**
   * The level, as `--level` takes it.
   */
  level: string;
  /**
   * Each limit.
   */
  limits: LimitLine[];
  /**
   * Transactions per second at which the level breaks; null where that is not known.
   */
  rate: Number | null;
  /**
   * What was seen at each rate, rising.
   */
  rates: RatePoint[];
  /**
   * To plan with: what is kept free taken off the low end of `rate`.
   */
  spare: Number | null;
  standing: Standing;
}
/**
 * A number, perhaps with an interval.
 */
export interface Number {
  /**
   * The upper end.
   */
  high?: number | null;
  /**
   * The lower end of its interval.
   */
  low?: number | null;
  unit: Quantity;
  /**
   * In the unit's base: seconds, bytes, 1 for a share of all.
   */
  value: number;
}
/**
 * A limit, and its own line.
 */
export interface LimitLine {
  /**
   * Its own line; null where it is too far above the others' to be known.
   */
  line: Number | null;
  /**
   * `99.0` for p99.
   */
  percent: number;
  /**
   * The stream.
   */
  stream: string;
  /**
   * The time that so many may not exceed.
   */
  within_ns: number;
}
/**
 * What was seen at one rate, in visits without a freeze where there are any.
 */
export interface RatePoint {
  /**
   * Late share of each limit, of `limits`.
   */
  late_shares: number[];
  /**
   * Transactions per second that were offered.
   */
  load: number;
  /**
   * 99th percentile of each limit's stream in ns, of `limits`; null with fewer than a hundred.
   */
  p99_ns: (number | null)[];
  /**
   * Visits.
   */
  visits: number;
}
/**
 * Where a run ran.
 */
export interface Machine {
  /**
   * `x86_64`, `aarch64`.
   */
  architecture: string;
  /**
   * The host's name.
   */
  host: string;
  /**
   * Kernel release.
   */
  kernel: string;
  /**
   * Bytes of memory.
   */
  memory_bytes: number;
  /**
   * Processor model.
   */
  processor: string;
  /**
   * Processors this process could use.
   */
  processors: number;
}
/**
 * A run's place in a list of suites that was played part after part.
 */
export interface PartOf {
  /**
   * The same for all runs of one sequence.
   */
  group: string;
  /**
   * The list's name.
   */
  list: string;
  /**
   * From 1, every repeat of every part counted.
   */
  number: number;
  /**
   * How many runs the whole sequence has.
   */
  of: number;
  /**
   * On which stack; null where the list is no study.
   */
  study: OfStudy | null;
}
/**
 * Which of a study's stacks a run was made on.
 */
export interface OfStudy {
  /**
   * The base once more, made only to see noise and drift.
   */
  again: boolean;
  /**
   * What the study varies, with the level here.
   */
  levels: Setting2[];
  /**
   * Which stack of the study's plan, from 1.
   */
  stack: number;
  /**
   * In which state its arrays were measured: `degraded`, `rebuilding`; null for healthy ones.
   */
  state: string | null;
}
/**
 * A stack, from paths down to the bus, and what around it bears on its speed.
 */
export interface StackTree {
  host: StackHost;
  /**
   * Every layer once, each before those that it stands on.
   */
  layers: Layer[];
  /**
   * What was asked for.
   */
  targets: StackTarget[];
  /**
   * Limits that the system sets to this process or to the devices.
   */
  throttles: Throttle[];
  /**
   * What could not be seen, and why.
   */
  unseen: Unseen[];
  /**
   * [`STACK_VERSION`] when it was written.
   */
  version: number;
}
/**
 * The machine around a stack.
 */
export interface StackHost {
  /**
   * How the processors' clock is set, each word once: `performance`, `powersave`.
   */
  governors: string[];
  /**
   * As `uname -r` says.
   */
  kernel: string | null;
  /**
   * Words of the kernel's command line on mitigations: `mitigations=off`.
   */
  mitigations: string[];
  /**
   * Nodes of memory.
   */
  numa_nodes: number | null;
  /**
   * Maker and product, as the firmware says.
   */
  product: string | null;
  /**
   * Settings of the page cache: `vm.dirty_ratio`.
   */
  settings: Setting[];
  /**
   * Faults of the processor that are not mitigated, or are at a price.
   */
  vulnerabilities: Setting[];
  /**
   * What it runs in, if it is no machine of its own: `KVM`, `User-Mode Linux`, `container`.
   */
  within: string | null;
}
/**
 * Something with a name and a value.
 */
export interface Setting {
  /**
   * What is set.
   */
  name: string;
  /**
   * To what.
   */
  value: string;
}
/**
 * One layer.
 */
export interface Layer {
  /**
   * Ids of the layers that it stands on, in their order where they have one.
   */
  below: string[];
  /**
   * Unique in the tree: the mount point of a file system, the kernel's name of a block device,
   * the address of a controller.
   */
  id: string;
  /**
   * Limits and settings of its queue, if it is a block device.
   */
  queue: Queue | null;
  /**
   * Bytes, of what has a length.
   */
  size_bytes: number | null;
  what: What;
}
/**
 * Limits and settings of a block device's queue. A partition has its disk's.
 */
export interface Queue {
  /**
   * How far its beginning is off from a physical sector of the disk; -1 where parts disagree.
   */
  alignment_offset_bytes: number | null;
  /**
   * Largest discard; 0 where there is none.
   */
  discard_bytes_max: number | null;
  /**
   * Unit of discards.
   */
  discard_unit_bytes: number | null;
  /**
   * Whether it takes writes that are on the medium when they are done.
   */
  fua: boolean | null;
  /**
   * Whether completions can be polled for.
   */
  io_poll: boolean | null;
  /**
   * Smallest unit that can be addressed.
   */
  logical_sector_bytes: number | null;
  /**
   * Smallest request without a penalty: of an array, its chunk.
   */
  minimum_io_bytes: number | null;
  /**
   * Whether the kernel merges neighbours: 0 yes, 1 only simple ones, 2 no.
   */
  no_merges: number | null;
  /**
   * Best request; of an array, its full stripe. 0 where it names none.
   */
  optimal_io_bytes: number | null;
  /**
   * Smallest unit written without reading first.
   */
  physical_sector_bytes: number | null;
  /**
   * What the kernel reads ahead.
   */
  read_ahead_bytes: number | null;
  /**
   * Whether it refuses writes.
   */
  read_only: boolean;
  /**
   * Largest that the device takes.
   */
  request_bytes_hardware_max: number | null;
  /**
   * Largest request that the kernel makes.
   */
  request_bytes_max: number | null;
  /**
   * Requests that the queue holds (`nr_requests`).
   */
  requests: number | null;
  /**
   * Whether it says that it has turning parts. Virtual disks and USB bridges often lie.
   */
  rotational: boolean | null;
  /**
   * I/O scheduler in force.
   */
  scheduler: string | null;
  /**
   * Those that could be.
   */
  schedulers: string[];
  /**
   * Target of the kernel's brake on writes; 0 when it is off.
   */
  write_brake_ns: number | null;
  /**
   * Write cache as the kernel believes it to be: `write back` (it sends flushes) or
   * `write through` (it sends none).
   */
  write_cache: string | null;
  /**
   * `none`, `host-aware`, `host-managed`.
   */
  zoned: string | null;
}
/**
 * A mounted file system.
 */
export interface FileSystem {
  /**
   * Its block size.
   */
  block_bytes: number | null;
  /**
   * What it was made with: `reflink`, `metadata_csum`.
   */
  features: string[];
  /**
   * The device of an external journal, if it has one.
   */
  journal: string | null;
  /**
   * `xfs`, `ext4`, `btrfs`, `zfs`, `fuse.sshfs`.
   */
  kind: string;
  /**
   * Options of mount and file system, as the kernel lists them.
   */
  options: string[];
  /**
   * Where it is mounted.
   */
  point: string;
  /**
   * Its pool, if it keeps several devices itself.
   */
  pool: Pool | null;
  /**
   * What was mounted.
   */
  source: string;
  /**
   * What it takes for the bytes on one member before the next (`sunit`, `stride`); 0 if it was
   * told that there is no stripe.
   */
  stripe_unit_bytes: number | null;
  /**
   * What it takes for a full stripe (`swidth`, `stripe-width`).
   */
  stripe_width_bytes: number | null;
}
/**
 * Devices that a file system keeps together itself: btrfs, zfs, bcachefs.
 */
export interface Pool {
  /**
   * Devices beside the data: log, cache, spares.
   */
  beside: string[];
  /**
   * How data lies: `raid1`, `raidz2 x 6`.
   */
  data: string[];
  /**
   * How metadata lies, where that can differ.
   */
  metadata: string[];
  /**
   * Its name, if it has one.
   */
  name: string | null;
  /**
   * Settings that bear on speed, in the pool's own words: `recordsize`.
   */
  settings: Setting[];
  /**
   * `ONLINE`, `DEGRADED`; btrfs: `missing devices`.
   */
  state: string | null;
}
/**
 * A device-mapper device.
 */
export interface Mapper {
  /**
   * Who made it, by its uuid: `LVM`, `CRYPT`, `mpath`.
   */
  maker: string | null;
  /**
   * Name as in `/dev/mapper`.
   */
  name: string;
  /**
   * How it is laid out, part after part; `None` where the table cannot be read.
   */
  segments: Segment[] | null;
}
/**
 * A part of a device-mapper device.
 */
export interface Segment {
  /**
   * Bytes on one member before the next.
   */
  chunk_bytes: number | null;
  /**
   * Of a `raid` target: a letter a member, `A` in step, `a` not yet, `D` failed, `-` missing.
   */
  health: string | null;
  /**
   * Its length.
   */
  length_bytes: number;
  /**
   * RAID level of a `raid` target.
   */
  level: string | null;
  /**
   * Where it lies, in order.
   */
  on: Extent[];
  /**
   * Its first byte on the device.
   */
  start_bytes: number;
  /**
   * Of a `raid` target: `idle`, `resync`, `recover`, `check`, `reshape`.
   */
  sync: string | null;
  /**
   * What the kernel does with it: `linear`, `striped`, `raid`, `crypt`, `delay`.
   */
  target: string;
}
/**
 * A place on a device below.
 */
export interface Extent {
  /**
   * Id of the layer.
   */
  layer: string;
  /**
   * First byte there; `None` where the target does not say one.
   */
  offset_bytes: number | null;
}
/**
 * An md array.
 */
export interface Md {
  /**
   * `none`, `internal`, `file`.
   */
  bitmap: string | null;
  /**
   * Bytes that one bit of it stands for.
   */
  bitmap_chunk_bytes: number | null;
  /**
   * Bytes on one member before the next.
   */
  chunk_bytes: number | null;
  /**
   * `resync`, `bitmap`, `journal`, `ppl`.
   */
  consistency: string | null;
  /**
   * The kernel's number of the layout.
   */
  layout: number | null;
  /**
   * `raid0`, `raid10`, `linear`; empty while it is not running.
   */
  level: string;
  /**
   * Members, by their places; spares last.
   */
  members: MdMember[];
  /**
   * `1.2`, `0.90`, `external:imsm`.
   */
  metadata: string | null;
  /**
   * Members that are missing.
   */
  missing: number | null;
  /**
   * `clean`, `active`, `read-auto`, `inactive`.
   */
  state: string | null;
  /**
   * RAID5 and 6: pages of cache per member.
   */
  stripe_cache_pages: number | null;
  /**
   * `idle`, `resync`, `recover`, `check`, `reshape`.
   */
  sync: string | null;
  /**
   * RAID5 and 6: extra threads.
   */
  threads: number | null;
  /**
   * Members that it should have, spares left out.
   */
  wanted: number | null;
}
/**
 * A member of an md array.
 */
export interface MdMember {
  /**
   * Read errors that were corrected.
   */
  errors: number | null;
  /**
   * Id of its layer.
   */
  layer: string;
  /**
   * Where its data begins.
   */
  offset_bytes: number | null;
  /**
   * Its place; `None` for spares and what failed.
   */
  slot: number | null;
  /**
   * `in_sync`, `spare`, `faulty`, `write_mostly`, as the kernel lists them.
   */
  state: string | null;
}
/**
 * A partition.
 */
export interface Partition {
  /**
   * Its number.
   */
  number: number | null;
  /**
   * Where it begins on its disk.
   */
  start_bytes: number | null;
}
/**
 * A file as a device.
 */
export interface LoopDevice {
  /**
   * Whether it goes past the page cache of the file's file system.
   */
  direct: boolean | null;
  /**
   * The file; `None` when nothing is attached.
   */
  file: string | null;
  /**
   * Where in the file it begins.
   */
  offset_bytes: number | null;
}
/**
 * A disk, or what presents itself as one.
 */
export interface Disk {
  /**
   * The drive's own word on its write cache, where it is not the kernel's: `write back`.
   */
  cache: string | null;
  /**
   * The kernel's driver.
   */
  driver: string | null;
  /**
   * Version of its firmware.
   */
  firmware: string | null;
  /**
   * What it is known as, where it is no drive: a cloud's volume, a hypervisor's disk.
   */
  known_as: string | null;
  /**
   * Limits that are known of such.
   */
  known_limits: string[];
  /**
   * Which.
   */
  model: string | null;
  /**
   * Which node of memory it hangs at.
   */
  numa_node: number | null;
  /**
   * Requests that it takes at a time, on SCSI.
   */
  queue_depth: number | null;
  /**
   * Queues that it has.
   */
  queues: number | null;
  /**
   * Its number; `#` and 16 hex digits where it is hashed.
   */
  serial: string | null;
  /**
   * How it is reached: `nvme`, `sata`, `sas`, `usb`, `virtio`, `iscsi`, `fc`.
   */
  transport: string | null;
  /**
   * Who made it, as it says.
   */
  vendor: string | null;
  /**
   * The last link to it.
   */
  wire: Wire | null;
}
/**
 * A link: what it does and what it could.
 */
export interface Wire {
  /**
   * The most that this end of it is made for; `None` where that is not told.
   */
  capable: Link2 | null;
  now: Link2;
}
/**
 * A link that all data of a device pass.
 */
export interface Link2 {
  /**
   * What it can carry in one direction, coding and packets taken off where that is known.
   */
  bytes_per_second: number;
  /**
   * What it is, from where: `PCIe 3.0 x4 of nvme0`.
   */
  name: string;
}
/**
 * A controller, port or bridge between disk and processor.
 */
export interface Controller {
  /**
   * `pci`, `usb`.
   */
  bus: string;
  /**
   * Its class: `nvme`, `sata`, `sas`, `raid`, `bridge`, `usb`.
   */
  class: string | null;
  /**
   * Numbers of maker and device: `144d:a80a`.
   */
  device: string | null;
  /**
   * The kernel's driver.
   */
  driver: string | null;
  /**
   * Whether an emulator made it up.
   */
  emulated: boolean;
  /**
   * Which node of memory it hangs at.
   */
  numa_node: number | null;
  /**
   * The slot that it is in, if the firmware numbers them.
   */
  slot: string | null;
  /**
   * Its link upwards.
   */
  wire: Wire | null;
}
/**
 * A path or device that was asked for.
 */
export interface StackTarget {
  /**
   * As the user named it.
   */
  given: string;
  /**
   * Ids of the layers that it is on.
   */
  on: string[];
  /**
   * Absolute, links resolved.
   */
  resolved: string;
  /**
   * What it is to a database, where that is known: `data`, `log`.
   */
  role: string | null;
}
/**
 * A limit that the system sets.
 */
export interface Throttle {
  /**
   * Id of the device, or its number where the tree does not have it.
   */
  device: string;
  /**
   * The control group, as a path from the top one.
   */
  group: string;
  /**
   * `reads`, `writes`, `bytes read`, `bytes written`.
   */
  of: string;
  /**
   * How many of them a second.
   */
  per_second: number;
}
/**
 * What could not be seen.
 */
export interface Unseen {
  /**
   * What: `how volume dm-0 is laid out`.
   */
  what: string;
  /**
   * Why, and what would show it.
   */
  why: string;
}
/**
 * Series of rounds of a run, and cliffs in what it wrote.
 */
export interface SteadyStates {
  /**
   * Falls of the write rate, in the order made; in visits of the fill and of preconditioning
   * too.
   */
  cliffs: WriteCliff[];
  /**
   * What is played until it is steady, writes, and did not fall.
   */
  no_cliff: NoCliff[];
  /**
   * Cells visited five times and more back to back without a ramp, and those that decide when a
   * phase is steady, in the order made.
   */
  series: SteadyState[];
}
/**
 * A fall of the write rate that stayed.
 */
export interface WriteCliff {
  /**
   * Bytes per second after.
   */
  after: number;
  /**
   * Written after it in the series.
   */
  after_bytes: number;
  /**
   * Written since that began, as near as can be told.
   */
  at_bytes: number;
  /**
   * The same, where the first observation of the new rate ended.
   */
  at_bytes_high: number;
  /**
   * The same, where the last observation of the old rate began, as far as noise lets tell.
   */
  at_bytes_low: number;
  /**
   * Bytes per second before.
   */
  before: number;
  /**
   * Index of the cell.
   */
  cell: number;
  /**
   * The cell as people say it.
   */
  cell_name: string;
  /**
   * Written in the run before that: by other cells, the fill and preconditioning. As all here it is
   * what the program wrote, not what the device did.
   */
  earlier_bytes: number;
  /**
   * Which visit of the run the series of writes began with.
   */
  order_first: number;
}
/**
 * Writes that were watched for a cliff, and none came.
 */
export interface NoCliff {
  /**
   * Where in one of its visits the writes fell all the same, as a write cache that fills makes them.
   */
  cache_at_bytes: number | null;
  /**
   * Index of the cell.
   */
  cell: number;
  /**
   * The cell as people say it.
   */
  cell_name: string;
  /**
   * Written in it before there was a rate to fall from: what fell sooner is not seen.
   */
  from_bytes: number;
  /**
   * Which visit of the run the series of writes began with.
   */
  order_first: number;
  /**
   * Written in it by the program: nothing is known of what comes after more.
   */
  written_bytes: number;
}
/**
 * A series of rounds of one cell.
 */
export interface SteadyState {
  /**
   * Whether the suite has it played until it is steady. Where it does not, only that it is
   * steady is worth a word: nobody asked for it, and drift is told as drift.
   */
  asked: boolean;
  /**
   * Index of the cell.
   */
  cell: number;
  /**
   * The cell as people say it.
   */
  cell_name: string;
  /**
   * The cells for which it decides: those of its phase where rounds visit several, else itself.
   */
  decides_for: number[];
  /**
   * Size of the device that it is on, where that is known.
   */
  device_bytes: number | null;
  /**
   * Its rounds have few requests for each one in flight.
   */
  few_requests: boolean;
  horizon: Horizon;
  /**
   * The last half of the rounds.
   */
  last_half: LastHalfTest | null;
  /**
   * Which visit of the run the first round was.
   */
  order_first: number;
  /**
   * Change of the rate for each time that `range_bytes` are written, over the horizon; `None`
   * when nothing was written or the rounds are too few.
   */
  per_fill: Slope | null;
  /**
   * The same for each GiB written. Where it is faster than nothing by more than chance, the rules
   * accept a rate that still moves.
   */
  per_gib: Slope | null;
  /**
   * The part of it that is written to: the range of the phase, or all of the target.
   */
  range_bytes: number;
  /**
   * Requests per second, round by round.
   */
  rounds: number[];
  /**
   * The last five rounds.
   */
  snia: SniaTest | null;
  /**
   * The stream, of a cell that has several.
   */
  stream: string | null;
  /**
   * Size of the target: of a file that is not the device's.
   */
  target_bytes: number;
  verdict: Verdict2;
  /**
   * So much has to be written before it can be called steady: what the suite asks of its phase,
   * else twice the target.
   */
  wanted_bytes: number;
  /**
   * Written to the device in the run up to the end of the series.
   */
  written_bytes: number;
}
/**
 * What the tests could see: nothing slower is excluded.
 */
export interface Horizon {
  /**
   * Measured time of their visits to the cell alone.
   */
  ns: number;
  /**
   * How many rounds.
   */
  rounds: number;
  /**
   * Time from the end of the round before them to the end of the last, all cells' visits and what
   * is between them included.
   */
  span_ns: number;
  /**
   * Written in that, by all cells.
   */
  written_bytes: number;
}
/**
 * The slope over the last half; see `stats::steady::last_half`.
 */
export interface LastHalfTest {
  /**
   * Whether it holds.
   */
  holds: boolean;
  /**
   * Rise of their fit line, by the mean; at most 0.05 either way.
   */
  rise: number;
  /**
   * How many rounds that is.
   */
  rounds: number;
}
/**
 * How fast rates change, as a share: 0.01 is 1 % faster. None is above 1000, which stands for
 * that and more.
 */
export interface Slope {
  /**
   * Upper end.
   */
  high: number | null;
  /**
   * Lower end of the 95 % interval.
   */
  low: number | null;
  /**
   * Per hour, per GiB or per fill; null where less than a third of that was looked at, and the
   * number would be a guess about the rest.
   */
  middle: number | null;
  /**
   * What it makes over the time or the bytes looked at.
   */
  over_all: number;
  /**
   * Upper end of that.
   */
  over_all_high: number;
  /**
   * Lower end of that.
   */
  over_all_low: number;
}
/**
 * SNIA's test; see `stats::steady::snia`.
 */
export interface SniaTest {
  /**
   * Whether it holds.
   */
  holds: boolean;
  /**
   * Largest minus smallest of five rounds, by their mean; at most 0.20.
   */
  range: number;
  /**
   * Rise of their fit line, by the mean; at most 0.10 either way.
   */
  rise: number;
}
/**
 * What was measured.
 */
export interface Target {
  /**
   * Cache in controllers and drives, as the user declared it.
   */
  cache_bytes: number | null;
  /**
   * Block devices, top first.
   */
  devices: string[];
  /**
   * Smallest unit of direct I/O.
   */
  direct_alignment_bytes: number | null;
  /**
   * File system type as mounted.
   */
  file_system: string | null;
  /**
   * How many files.
   */
  files: number;
  /**
   * As the user named it.
   */
  given: string;
  /**
   * `file`, `block-device`, `character-device` or `twin`; `unknown` in imported runs.
   */
  kind: string;
  /**
   * The slowest link between the host and the devices, where the kernel tells one.
   */
  link: Link | null;
  /**
   * The text that a simulated device was made by; null of others.
   */
  model: string | null;
  /**
   * Mount point and options.
   */
  mount: string | null;
  /**
   * What a reader of the numbers must know about it.
   */
  remarks: string[];
  /**
   * With symbolic links resolved.
   */
  resolved: string;
  /**
   * Bytes of one file, or of the device.
   */
  size_bytes: number;
}
/**
 * A link that all data of a device pass.
 */
export interface Link {
  /**
   * What it can carry in one direction.
   */
  bytes_per_second: number;
  /**
   * What it is, from where.
   */
  name: string;
}
/**
 * A stream beside others.
 */
export interface PageTogether {
  /**
   * Alone.
   */
  alone: number;
  /**
   * Requests of a burst, where it works in bursts.
   */
  burst: number | null;
  /**
   * Their bytes.
   */
  burst_bytes: number | null;
  /**
   * `commit`, `read`, ...
   */
  op: string;
  /**
   * Per second beside the others; of bursts while it works.
   */
  rate: number;
  ratio: Number;
  /**
   * Its name.
   */
  stream: string;
}
/**
 * What is said on one question.
 */
export interface Verdict {
  /**
   * Keys of the cells that it is about; empty for all of them.
   */
  cells: string[];
  /**
   * What each of the sentences is about, in their order.
   */
  evidence: Evidence[];
  /**
   * Kinds of figures that show it, the best first.
   */
  figures: string[];
  /**
   * Whether somebody should look: a mark of a cell stands behind it.
   */
  is_doubt: boolean;
  question: Question;
  /**
   * Verdict first, then evidence, then what to do.
   */
  sentences: string[];
  severity: Severity;
  /**
   * The question: `Stalls`, `Gaps`, `What limits`.
   */
  topic: string;
}
/**
 * Where a sentence can be seen.
 */
export interface Evidence {
  /**
   * The cells that it names.
   */
  cells: Named[];
  /**
   * Kinds of figures that show it, the best first; empty for advice.
   */
  figures: string[];
}
/**
 * A cell in a sentence.
 */
export interface Named {
  /**
   * Its key.
   */
  cell: string;
  /**
   * The words that stand for it in the sentence.
   */
  words: string;
}
/**
 * Which of several places.
 */
export interface PageWhich {
  answer: Verdict;
  /**
   * What each place did, in the order of the runs.
   */
  places: PlaceFigures[];
  /**
   * The chosen place by each other.
   */
  ratios: PlaceRatio[];
  /**
   * The run on the place that was chosen, or on the one with the most commits.
   */
  run: string | null;
}
/**
 * What a place did.
 */
export interface PlaceFigures {
  /**
   * Visits that failed, or in which requests never came back.
   */
  failed: number;
  /**
   * In the order in which they decide.
   */
  figures: PlaceFigure[];
  /**
   * Its letter, in the order in which places were named.
   */
  label: string;
  /**
   * As the user named it.
   */
  place: string;
  /**
   * Its run.
   */
  run: string;
  /**
   * The longest of these, ns.
   */
  stall_ns_max: number;
  /**
   * How often nothing completed for 100 ms and more, and the host was not to blame.
   */
  stalls: number;
}
/**
 * One figure of a place.
 */
export interface PlaceFigure {
  /**
   * A cache answered, so it is compared with nothing.
   */
  cached: boolean;
  rate: Number;
  /**
   * What it is a rate of: `commits/s by 16 sessions`.
   */
  what: string;
}
/**
 * A figure of the chosen place by that of another.
 */
export interface PlaceRatio {
  /**
   * Letter of the other place.
   */
  of: string;
  ratio: Number;
  verdict: Verdict3;
  /**
   * What figure.
   */
  what: string;
}
