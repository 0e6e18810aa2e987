#!/bin/sh
# guard.sh COMMAND...: runs a machine, and ends all of its processes when the machine ends, when this
# is told to end, or when the other end of its standard input is closed. A machine is some ten processes; told by itself it
# ends them all but for, now and then, one that polls, and killed it leaves those that it traced.

# The machine makes a group of its own.
rest() {
  kill -s KILL -- "-$machine" 2>/dev/null
  kill -s KILL -- "-$$"
}

end() {
  kill -s TERM "$machine"
  # The time it takes it to end those that it traces.
  sleep 1
  rest
}
machine=$$
trap end TERM INT HUP
exec 3<&0
"$@" </dev/null 3<&- &
machine=$!
{
  cat >/dev/null
  kill -s TERM $$
} <&3 &
wait "$machine"
rest
