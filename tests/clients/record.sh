#!/bin/sh
# Runs a server for a driver and notes down how it ended.
#
#   sh record.sh DIRECTORY SERVER ARGS...
#
# A client library ends a server by closing its stdin, and by signals when that
# was not enough, but it does not tell afterwards what it took. So this script
# stands between the two. The server gets the very stdin and stdout that the
# library made; the signals stay here, because the server must do without them.
#
# Every run gets a directory of its own, numbered from 1, since a library may
# start the server more than once:
#
#   DIRECTORY/1/pid     the process id of the server
#   DIRECTORY/1/stderr  what the server wrote to stderr
#   DIRECTORY/1/end     its exit status and the signal that was sent, or "none"
#
# There is no `end` as long as the server runs, nor when this script was killed.
set -u

directory=$1
shift

# mkdir fails on a number that is taken, so two runs never share one.
number=1
until mkdir "$directory/$number" 2>/dev/null; do
    [ -d "$directory" ] || exit 125
    number=$((number + 1))
done
run=$directory/$number

# The shell acts on a signal when the server has ended, and not before.
signal=none
trap 'signal=HUP' HUP
trap 'signal=INT' INT
trap 'signal=TERM' TERM

# The inner shell becomes the server, which is how its process id is known.
sh -c 'run=$1; shift; echo $$ >"$run/pid"; exec "$@" 2>"$run/stderr"' sh "$run" "$@"
status=$?

# A driver that gave up has cleared everything away.
[ -d "$run" ] || exit "$status"

# The note appears in one step, so that nobody reads half of it.
echo "$status $signal" >"$run/end.part"
mv "$run/end.part" "$run/end"
exit "$status"
