// Command medusa-probe says in JSON what the driver can do, or with --devices only which devices there are. medusa doctor and
// medusa restore run it: medusa itself binds no driver, and a driver that crashes takes only this process with it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"medusa/internal/cuda/probe"
	"medusa/internal/cuda/probe/ask"
)

func main() {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	look := probe.Run
	if slices.Contains(os.Args[1:], ask.DevicesOnly) {
		look = probe.Devices
	}
	if err := e.Encode(look()); err != nil {
		fmt.Fprintf(os.Stderr, "medusa-probe: %v\n", err)
		os.Exit(1)
	}
}
