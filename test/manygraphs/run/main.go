// Command run is `make test-many-graphs`: it measures the time that `medusa materialize` takes for 1,514 graphs beyond the native starts that
// it makes.
//
// In: the folder that make built, and a limit. Out: one line with times of the clock and of the processor. Fails: if a process does, or if all
// runs take more processor time than five native starts and the limit. The clock also counts other work of the machine.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// starts is how many times materialize starts the engine.
const starts = 5

func main() {
	build := flag.String("build", "build", "folder with what make built")
	limit := flag.Duration("limit", time.Minute, "processor time beyond that of the native starts")
	flag.Parse()
	if err := run(*build, *limit); err != nil {
		fmt.Fprintf(os.Stderr, "many graphs: %v\n", err)
		os.Exit(1)
	}
}

// spent is the time of a process and of those that it waited for.
type spent struct{ clock, processor time.Duration }

func run(build string, limit time.Duration) error {
	dir, err := os.MkdirTemp("", "manygraphs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	engine := filepath.Join(build, "manygraphs-engine")
	var native spent
	for range starts {
		one, err := measure(build, engine)
		if err != nil {
			return err
		}
		native.clock, native.processor = native.clock+one.clock, native.processor+one.processor
	}
	all, err := measure(build, filepath.Join(build, "medusa"), "materialize", "-o", filepath.Join(dir, "x.medusa"), "--", engine)
	if err != nil {
		return err
	}
	fmt.Printf("many graphs: 1514; materialize %.1f s (processor %.1f s), %d native starts %.1f s (%.1f s), difference %.1f s (%.1f s)\n",
		all.clock.Seconds(), all.processor.Seconds(), starts, native.clock.Seconds(), native.processor.Seconds(),
		(all.clock - native.clock).Seconds(), (all.processor - native.processor).Seconds())
	if over := all.processor - native.processor; over > limit {
		return fmt.Errorf("%s of processor time beyond the native starts, more than %s", over, limit)
	}
	return nil
}

func measure(build, program string, args ...string) (spent, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(build, "simulated"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return spent{}, fmt.Errorf("run %s: %w\n%s", filepath.Base(program), err, out.Bytes())
	}
	return spent{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}
