package graphir_test

import (
	"fmt"
	"log"
	"os"

	"medusa/graphir"
)

// The graphs of an artifact.
func ExampleDecode() {
	data, err := os.ReadFile("testdata/v1.graph")
	if err != nil {
		log.Fatal(err)
	}
	spec, err := graphir.Decode(data)
	if err != nil {
		log.Fatal(err)
	}
	err = spec.EachGraph(func(i int, g *graphir.Graph) error {
		fmt.Printf("%s: batch %d, %d nodes\n", g.Label, g.Batch, len(g.Nodes))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// decode 2: batch 2, 5 nodes
	// decode 1: batch 1, 5 nodes
}
