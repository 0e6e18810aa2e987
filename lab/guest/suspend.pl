#!/usr/bin/perl
# suspend.pl NAME BLOCK READS LENGTH: once the block device BLOCK has completed READS reads, suspends the mapped device NAME for
# LENGTH seconds, and prints when it did, in nanoseconds since 1970. `dmsetup` would do, but starting it takes longer than the
# times may be wrong.
use strict;
use warnings;
use Time::HiRes qw(sleep clock_gettime CLOCK_REALTIME);

my ($name, $block, $reads, $length) = @ARGV;
open(my $control, '+<', '/dev/mapper/control') or die "/dev/mapper/control: $!\n";

# struct dm_ioctl, linux/dm-ioctl.h: version, data_size, data_start, target_count, open_count, flags,
# event_nr, padding, dev, name, uuid, data.
sub suspended {
    my ($flags) = @_;
    my $request = pack('L3 L L L l L L L Q a128 a129 a7', 4, 0, 0, 312, 0, 0, 0, $flags, 0, 0, 0, $name, '', '');
    ioctl($control, 0xC138FD06, $request) or die "suspending $name: $!\n";
}

sub completed {
    open(my $file, '<', "/sys/block/$block/stat") or die "$block: $!\n";
    my ($reads) = split(' ', <$file>);
    return $reads;
}

sub now { sprintf('%d%09d', int($_[0]), ($_[0] - int($_[0])) * 1e9) }

sleep(0.01) while completed() < $reads;
my $start = clock_gettime(CLOCK_REALTIME);
suspended(1 << 1 | 1 << 10);    # DM_SUSPEND_FLAG, DM_SKIP_LOCKFS_FLAG
sleep($length);
my $end = clock_gettime(CLOCK_REALTIME);
suspended(0);
print "suspended_at\t", now($start), "\nlength\t", int(($end - $start) * 1e9), "\n";
