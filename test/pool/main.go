// Command pool asks a medusa pool for many processes, each with other properties, kills processes meanwhile, and compares the findings of each engine
// with the properties of its caller.
//
// In: the output of make, and a Python 3. Out: a line for each difference, and last the line with the counts. Fails: exit code 1 if a start had
// properties of another, was lost without an error, or left a process.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	n := flag.Int("n", 1000, "requests")
	seed := flag.Uint64("seed", 1, "of properties and kills")
	flag.Parse()
	dir, err := os.MkdirTemp("", "test-pool-")
	if err == nil {
		defer os.RemoveAll(dir)
		var c counts
		if c, err = run("build", dir, *n, *seed); err == nil {
			fmt.Printf("test-pool: PASS %s\n", c)
			return
		}
	}
	fmt.Println("test-pool: FAIL", err)
	_ = os.RemoveAll(dir)
	os.Exit(1)
}
