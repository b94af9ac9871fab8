// Package garbage makes garbage collection seldom in processes that live for seconds.
//
// In: the environment, whose GOGC wins. Out: the heap may grow to three times the memory in use before a collection, in place
// of twice, and to 8 MB before the first, in place of 4 MB. A restore ends before that. It cannot fail.
package garbage

import (
	"os"
	"runtime/debug"
)

// percent is the new memory, in percent of the memory in use, that starts a collection.
const percent = 200

// Seldom makes collections seldom from here on.
func Seldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
