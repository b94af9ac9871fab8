package restore_test

import (
	"fmt"
	"log"

	"medusa/artifacts"
	"medusa/restore"
)

// The order in which an engine in Go talks to its session. docs/engines.md explains each step; the marks go to the interposer,
// as runners/reference/marks does. Without medusa the session has no effect, and the engine captures.
func Example() {
	session, err := restore.FromEnv(restore.Hooks{})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	fmt.Println("run:", session.Run())

	// The context is current here, before any allocation.
	if err := session.Identify(artifacts.Identity{{Key: artifacts.KeyEngineName, Value: "mine"}}); err != nil {
		log.Print(err) // a native start
	}
	session.Phase("kv_cache")
	if _, given := session.KVBytes(); !given {
		fmt.Println("profile the KV cache")
	}
	session.Phase("weights")
	for _, batch := range session.Triggers() {
		if err := session.Trigger(func() error { return runFirstLayer(batch) }); err != nil {
			log.Print(err)
		}
	}
	session.Phase("warmup")
	session.Phase("capture")
	if graphs, err := session.Graphs(); err == nil {
		fmt.Println(len(graphs), "graphs are restored")
	} else {
		fmt.Println("warm up and capture")
	}
	session.Phase("ready")
	if err := session.Ready(nil); err != nil {
		log.Fatal(err)
	}
	// Output:
	// run: none
	// profile the KV cache
	// warm up and capture
}

func runFirstLayer(int64) error { return nil }
