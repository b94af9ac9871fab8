#!/bin/sh
# Prints the training text: the King James Version of the Bible, from Debian's packages bible-kjv and bible-kjv-text.
# One verse a line, an empty line between chapters, no numbers and no headings.
# usage: text.sh [directory with bible and its data, where the packages are unpacked rather than installed]
set -eu
root=${1:-}
"$root/usr/bin/bible" -p "$root/usr/lib/" -l100000 gen1:1-rev22:21 </dev/null |
	awk '/^ +[0-9]+ / { if ($1 == 1 && n++) print ""; sub(/^ +[0-9]+ /, ""); print }'
