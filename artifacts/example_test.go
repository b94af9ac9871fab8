package artifacts_test

import (
	"fmt"
	"log"

	"medusa/artifacts"
)

// An artifact's GPU, and the sizes of its tables.
func ExampleRead() {
	a, err := artifacts.Read("testdata/v2.medusa")
	if err != nil {
		log.Fatal(err)
	}
	gpu, _ := a.Identity.Get(artifacts.KeyGPUName)
	fmt.Println(gpu)
	fmt.Println(a.Ranks(), "ranks,", len(a.Spec.Graphs), "graphs,", len(a.Spec.Allocations), "allocations")
	// Output:
	// Simulated GPU
	// 3 ranks, 1 graphs, 2 allocations
}

// Whether a process may use an artifact.
func ExampleCompare() {
	recorded := artifacts.Identity{
		{Key: artifacts.KeyGPUName, Value: "NVIDIA H100"},
		{Key: artifacts.KeyDriverVersion, Value: "12080"},
	}
	here := artifacts.Identity{
		{Key: artifacts.KeyGPUName, Value: "NVIDIA A100"},
		{Key: artifacts.KeyDriverVersion, Value: "12080"},
	}
	if mismatch := artifacts.Compare(recorded, here, nil); mismatch != nil {
		for _, d := range mismatch.Differences {
			fmt.Println(d.Key)
		}
	}
	// Output: gpu.name
}
