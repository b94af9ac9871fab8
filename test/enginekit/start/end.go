package start

import (
	"errors"
	"fmt"
	"os"

	"medusa/restore"
)

// End ends an engine's process because of an error: as the session says if it has ended the start, and otherwise with exit code 1 and
// the error on standard error.
func End(engine string, err error) {
	var exit *restore.Exit
	if errors.As(err, &exit) {
		os.Exit(exit.Code)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", engine, err)
	os.Exit(1)
}
