// Command medusa-probe says in JSON what the driver can do. medusa doctor runs it: medusa itself binds no driver, and a
// driver that crashes takes only this process with it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"medusa/internal/cuda/probe"
)

func main() {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(probe.Run()); err != nil {
		fmt.Fprintf(os.Stderr, "medusa-probe: %v\n", err)
		os.Exit(1)
	}
}
