// Command run is `make test-full-size`: sizes in, one line out with them and the peak memory of each process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"medusa/test/fullsize"
)

func main() {
	s := fullsize.Sizes{}
	flag.Uint64Var(&s.Device, "device", 0, "bytes of device memory")
	flag.Uint64Var(&s.KV, "kv", 0, "bytes of the KV cache")
	flag.IntVar(&s.Graphs, "graphs", 0, "graphs")
	flag.IntVar(&s.Nodes, "nodes", 0, "kernels in each")
	limit := flag.Uint64("limit", 0, "bytes of host memory that a process may take")
	build := flag.String("build", "build", "folder with what make built")
	flag.Parse()
	if err := run(*build, *limit, s); err != nil {
		fmt.Fprintf(os.Stderr, "full size: %v\n", err)
		os.Exit(1)
	}
}

func run(build string, limit uint64, s fullsize.Sizes) error {
	dir, err := os.MkdirTemp("", "fullsize-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	done, err := fullsize.Run(context.Background(), build, dir, s)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("full size: device %.1f GB, KV cache %d GiB, %d graphs of %d nodes; peak MiB:", float64(s.Device)/1e9, s.KV>>30, s.Graphs, s.Nodes)
	for _, p := range done {
		line += fmt.Sprintf(" %s %d,", p.Name, p.Peak>>20)
		if p.Peak > limit {
			err = fmt.Errorf("%s took %d MiB, more than %d", p.Name, p.Peak>>20, limit>>20)
		}
	}
	fmt.Println(line[:len(line)-1])
	return err
}
