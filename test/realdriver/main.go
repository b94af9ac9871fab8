// Command realdriver runs Medusa's hooks before a driver with NVIDIA's own libcuda.so.1, on a machine without a GPU. It only
// calls the driver and reports the driver's answers.
//
// In: the built project; libcuda1 of Debian's component non-free and NVIDIA's wheels, which it fetches into a folder. Out: the
// names that no hook knows, a line for each fault, and last "test-real-driver: PASS driver=VERSION names=N queries=N unknown=N" or
// "test-real-driver: FAIL ...". Fails: if the packages cannot be fetched, naming the addresses that were tried; or if there was any fault.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed unhooked.txt
var unhookedText []byte

const interposerName = "libmedusa_interpose.so"

func main() {
	t := &test{}
	f := &fetcher{}
	flag.StringVar(&f.dir, "dir", filepath.Join(os.TempDir(), fmt.Sprintf("medusa-real-driver-%d", os.Getuid())), "folder for the packages; kept for the next call")
	flag.StringVar(&f.mirror, "mirror", "", "of Debian; default: the one that this machine's packages come from")
	flag.StringVar(&t.build, "build", "build", "folder with the built project")
	flag.StringVar(&t.spec, "spec", "internal/cuda/driver.spec", "the entry points that the project knows")
	flag.StringVar(&t.model, "model", "runners/reference/models/tiny", "model of the reference engine")
	series := flag.String("series", "550,555", "series of drivers")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok := true
	for _, s := range strings.Split(*series, ",") {
		line, err := t.all(ctx, f, s)
		if err != nil {
			fmt.Fprintln(os.Stderr, "test-real-driver:", err)
			ok = false
		}
		fmt.Println(line)
	}
	if !ok {
		os.Exit(1)
	}
}

// test is one run with one driver.
type test struct {
	build, spec, model string
	driver             string            // folder with libcuda.so.1
	libraries          map[string]string // runtimes and libraries
	scratch            string
	faults             []error
}

// most is how many faults are printed; a hook that is missing gives hundreds.
const most = 20

func (t *test) fault(format string, args ...any) {
	t.faults = append(t.faults, fmt.Errorf(format, args...))
	if len(t.faults) <= most {
		fmt.Fprintln(os.Stderr, "fault:", t.faults[len(t.faults)-1])
	}
}

func (t *test) all(ctx context.Context, f *fetcher, series string) (line string, err error) {
	line = "test-real-driver: FAIL driver=" + series
	for _, dir := range []*string{&f.dir, &t.build, &t.model} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return line, err
		}
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return line, err
	}
	var version string
	if t.driver, version, err = f.driver(ctx, series); err != nil {
		return line, err
	}
	if t.libraries, err = f.libraries(ctx); err != nil {
		return line, err
	}
	if t.scratch, err = os.MkdirTemp("", "medusa-real-driver-"); err != nil {
		return line, err
	}
	defer os.RemoveAll(t.scratch)
	t.faults = nil
	counts, err := t.entryPoints(ctx)
	if err == nil {
		err = t.runtimes(ctx)
	}
	if err == nil {
		err = t.commands(ctx)
	}
	verdict := "PASS"
	if err != nil || len(t.faults) > 0 {
		verdict = "FAIL"
	}
	if err == nil && len(t.faults) > 0 {
		err = fmt.Errorf("driver %s: %d faults", version, len(t.faults))
	}
	return fmt.Sprintf("test-real-driver: %s driver=%s names=%d queries=%d unknown=%d", verdict, version, counts.names, counts.queries, counts.unknown), err
}

type counts struct{ names, queries, unknown int }

// mode is a way in which the interposer is there.
type mode struct {
	name   string
	env    []string
	active bool
}

// modes are all that interpose.Command can set, and none.
func (t *test) modes() []mode {
	preload := "LD_PRELOAD=" + filepath.Join(t.build, "lib", interposerName)
	region, stretched := "MEDUSA_EXACT=0x120060000000:0x40000000000", "MEDUSA_EXACT=0x260060000000:0x80000000000"
	return []mode{
		{"off", []string{preload}, false},
		{"record", []string{preload, "MEDUSA_MODE=record", "MEDUSA_TRACE=" + t.scratch + "/record.trace"}, true},
		{"record, gaps", []string{preload, "MEDUSA_MODE=record", "MEDUSA_TRACE=" + t.scratch + "/gaps.trace", "MEDUSA_GAP_SEED=7"}, true},
		{"record, exact", []string{preload, "MEDUSA_MODE=record", "MEDUSA_TRACE=" + t.scratch + "/exact.trace", region}, true},
		{"record, exact, gaps", []string{preload, "MEDUSA_MODE=record", "MEDUSA_TRACE=" + t.scratch + "/stretched.trace", stretched, "MEDUSA_GAP_SEED=7"}, true},
		{"replay", []string{preload, "MEDUSA_MODE=replay"}, true},
		{"replay, exact", []string{preload, "MEDUSA_MODE=replay", region}, true},
	}
}

// entryPoints asks the driver for everything, and judges each answer.
func (t *test) entryPoints(ctx context.Context) (c counts, err error) {
	spec, err := readSpec(t.spec)
	if err != nil {
		return c, err
	}
	driver, err := exports(filepath.Join(t.driver, "libcuda.so.1"))
	if err != nil {
		return c, err
	}
	hooks, err := exports(filepath.Join(t.build, "lib", interposerName))
	if err != nil {
		return c, err
	}
	p, err := newPlaces(driver, hooks, spec)
	if err != nil {
		return c, err
	}
	names := questions(driver)
	c.names = len(names)
	list := filepath.Join(t.scratch, "names")
	if err := os.WriteFile(list, []byte(strings.Join(names, "\n")+"\n"), 0o644); err != nil {
		return c, err
	}
	native, err := t.ask(ctx, nil, list)
	if err != nil {
		return c, err
	}
	c.queries = len(native)
	for _, a := range native {
		if bad := p.judgeNative(a); bad != "" {
			t.fault("%s", bad)
		}
	}
	for _, m := range t.modes() {
		got, err := t.ask(ctx, m.env, list)
		if err != nil {
			return c, fmt.Errorf("mode %s: %w", m.name, err)
		}
		if len(got) != len(native) {
			t.fault("mode %s: %d answers, without the interposer %d", m.name, len(got), len(native))
			continue
		}
		for i := range got {
			if bad := p.judge(native[i], got[i], m.active); bad != "" {
				t.fault("mode %s: %s", m.name, bad)
			}
		}
	}
	c.unknown, err = t.unhooked(driver, spec)
	return c, err
}

// questions are the names that the driver exports and cuGetProcAddress's names for them, without version and stream flavour.
func questions(driver map[string]uint64) []string {
	all := map[string]bool{}
	for name := range driver {
		all[name] = true
		all[flavour.ReplaceAllString(name, "")] = true
	}
	var out []string
	for name := range all {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (t *test) ask(ctx context.Context, env []string, list string) ([]answer, error) {
	out, problems, exit, err := t.run(ctx, env, filepath.Join(t.build, "test", "real-query"), "libcuda.so.1", list)
	if err == nil && exit != 0 {
		err = fmt.Errorf("query: exit code %d: %s", exit, problems)
	}
	if err != nil {
		return nil, err
	}
	return parseAnswers(out)
}

// unhooked prints the driver's names that no hook knows, and compares them with the list of those that need none.
func (t *test) unhooked(driver map[string]uint64, spec map[string]known) (int, error) {
	expected, err := parseExpected(unhookedText)
	if err != nil {
		return 0, err
	}
	found := unhooked(driver, spec)
	for _, name := range found {
		reason := "NO REASON GIVEN"
		for _, e := range expected {
			if e.name == name {
				reason = e.reason
			}
		}
		fmt.Printf("no hook: %-45s %s\n", name, reason)
	}
	for _, bad := range compareExpected(found, expected, spec) {
		t.fault("%s", bad)
	}
	return len(found), nil
}

// runtimes compares the answers of real runtimes and libraries under the interposer with those without it.
func (t *test) runtimes(ctx context.Context) error {
	program := filepath.Join(t.build, "test", "real-runtime")
	for _, files := range [][]string{{"libcudart.so.12"}, {"libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13"}} {
		argv := []string{program}
		for _, name := range files {
			if t.libraries[name] == "" {
				return fmt.Errorf("the wheels have no %s", name)
			}
			argv = append(argv, t.libraries[name])
		}
		search := []string{"LD_LIBRARY_PATH=" + t.driver + ":" + filepath.Dir(argv[len(argv)-1]) + ":" + filepath.Dir(argv[1])}
		native, problems, exit, err := t.run(ctx, search, argv...)
		if err != nil {
			return err
		}
		fmt.Printf("%s:\n%s", strings.Join(files, ", "), native)
		if exit != 0 || problems != "" || strings.Contains(native, " 0 ") || !strings.Contains(native, "child 0\n") {
			t.fault("%s: exit code %d: %s%s", files[0], exit, native, problems)
		}
		for _, m := range t.modes() {
			got, problems, exit, err := t.run(ctx, append(search, m.env...), argv...)
			if err != nil {
				return err
			}
			if got != native || exit != 0 || problems != "" {
				t.fault("%s, mode %s: exit code %d: %s%s", files[0], m.name, exit, got, problems)
			}
		}
	}
	return nil
}

// commands runs ours, each of which has one line for a machine without a GPU.
func (t *test) commands(ctx context.Context) error {
	artifact := filepath.Join(t.scratch, "simulated.medusa")
	_, problems, exit, err := t.run(ctx, []string{"LD_LIBRARY_PATH=" + filepath.Join(t.build, "simulated")}, filepath.Join(t.build, "medusa"),
		"materialize", "-o", artifact, "--", filepath.Join(t.build, "reference"), "run", "--model", t.model, "--batches", "1")
	if err == nil && exit != 0 {
		err = fmt.Errorf("materialize on the simulated GPU: exit code %d: %s", exit, problems)
	}
	if err != nil {
		return err
	}
	for _, c := range trials(t.build, t.model, artifact, t.scratch) {
		out, problems, exit, err := t.run(ctx, nil, c.argv...)
		if err != nil {
			return err
		}
		if err := c.judge(exit, out+problems); err != nil {
			t.fault("%v", err)
		}
		fmt.Printf("no device: %-25s exit code %d\n", c.name, exit)
	}
	return nil
}

// run starts a program that finds the driver, and of Medusa's variables only those in env. The exit code is -1 if a
// signal ended it.
func (t *test) run(ctx context.Context, env []string, argv ...string) (out, problems string, exit int, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.scratch, "MEDUSA_CACHE=" + filepath.Join(t.scratch, "cache"),
		"LD_LIBRARY_PATH=" + t.driver}, env...)
	cmd.Dir = t.scratch
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		err = ctx.Err()
	}
	if cmd.ProcessState != nil {
		exit = cmd.ProcessState.ExitCode()
	}
	return stdout.String(), stderr.String(), exit, err
}
