// Command medusa-probe prints the driver's abilities as JSON, or with --devices only the devices. medusa doctor and medusa
// restore run it as a process of its own: medusa then needs no driver, and a crash of the driver ends only the probe.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	question "medusa/artifacts/probe"
	"medusa/internal/cuda/probe"
)

func main() {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	look := probe.Run
	if slices.Contains(os.Args[1:], question.DevicesOnly) {
		look = probe.Devices
	}
	if err := e.Encode(look()); err != nil {
		fmt.Fprintf(os.Stderr, "medusa-probe: %v\n", err)
		os.Exit(1)
	}
}
