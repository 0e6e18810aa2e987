// Every kind of figure, in the order of the page. A new one is a file beside this and a line here.

import { axis } from './axis';
import { bars } from './bars';
import { compare } from './compare';
import { time } from './course';
import { distribution, exposure } from './distribution';
import type { Figure } from './figure';
import { heat } from './heat';
import { latencies } from './latencies';
import { levels } from './levels';
import { line } from './line';
import { together } from './together';
import { load } from './load';
import { order } from './order';
import { roofline } from './roofline';
import { scaling } from './scaling';
import { size } from './size';
import { stack } from './stack';
import { rounds, written } from './steady';

export const FIGURES: Figure[] = [
  line,
  together,
  size,
  heat,
  scaling,
  levels,
  axis,
  compare,
  bars,
  roofline,
  load,
  time,
  latencies,
  order,
  distribution,
  exposure,
  rounds,
  written,
  stack,
];
