package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"medusa/interpose"
)

// steps lists the attempts, the most telling first. If one of the first three fails, the later ones tell little.
func steps() []Step {
	return []Step{
		{1, "machine, driver, conformance, addresses", 90 * time.Second, machine},
		{2, "demo", 120 * time.Second, demo},
		{3, "torch under the recorder", 120 * time.Second, torchRecorded},
		{4, "all memory in a region", 60 * time.Second, memory},
		{5, "random programs", 540 * time.Second, programs},
		{6, "torch engine materialized", 480 * time.Second, torchMaterialized},
		{7, "torch engine restored", 240 * time.Second, torchRestored},
		{8, "Llama 2 7B at 35 batch sizes", 590 * time.Second, torchShapes},
		{9, "refusals and the sanitizer", 180 * time.Second, refusals},
		{10, "random torch programs", 300 * time.Second, torchPrograms},
		{11, "vLLM", 590 * time.Second, vllmRestored},
		{12, "torch engine with two ranks", 480 * time.Second, torchRanks},
	}
}

// simulatedLimit is the limit of every step on the simulated GPU, whose work a processor does.
const simulatedLimit = 590 * time.Second

// limited gives steps the limits that they have on this kind of device.
func (k *Kit) limited(all []Step) []Step {
	for i := range all {
		all[i].Limit = sized(k, all[i].Limit, simulatedLimit)
	}
	return all
}

// simulated reports whether sizes are to be those of the simulated GPU, on which times have no meaning.
func (k *Kit) simulated() bool { return k.Device == "simulated" }

// sized returns the first value on a GPU and the second one on the simulated GPU.
func sized[T any](k *Kit, gpu, simulated T) T {
	if k.simulated() {
		return simulated
	}
	return gpu
}

func (k *Kit) path(elements ...string) string {
	return filepath.Join(append([]string{k.Root}, elements...)...)
}

// environment is the environment of every program of the kit.
func (k *Kit) environment() []string {
	env := []string{"HOME=" + k.Work, "MEDUSA_CACHE=" + filepath.Join(k.Work, "cache"), "HF_HUB_OFFLINE=1"}
	if k.simulated() {
		env = append(env, "LD_LIBRARY_PATH="+k.path("simulated", "torch")+":"+k.path("simulated"), "SIMGPU_MACHINE_CODE=no-op")
	}
	return env
}

func (k *Kit) reference() []string {
	return []string{k.path("reference"), "run", "--model", k.path("model"), "--batches", "1"}
}

// lineOf is the line that begins with a word.
func lineOf(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, word) {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	return "no line " + word
}

// expectLast runs a program that ends with a line of its own verdict.
func (a *Attempt) expectLast(prefix string, env []string, argv ...string) error {
	out, err := a.run(env, argv...)
	last := lastLine(out)
	a.row(filepath.Base(argv[0]), "%s", last)
	if err == nil && !strings.HasPrefix(last, prefix) {
		err = fmt.Errorf("%s: the last line is %q, want %q", filepath.Base(argv[0]), last, prefix)
	}
	return err
}

func demo(a *Attempt) error {
	return a.expectLast("demo: PASS", nil, a.path("medusa-demo"), "-device", a.Device, "-model", a.path("model"), "-build", a.Root)
}

// Every program is restored at the recorded addresses and at others.
func programs(a *Attempt) error {
	n := sized(a.Kit, 300, 10)
	out, err := a.run(nil, a.path("programs"), "-device", a.Device, "-n", fmt.Sprint(n), "-build", a.Root)
	a.row("programs", "%s", lastLine(out))
	if want := fmt.Sprintf("programs: %d differences: 0", n); !strings.HasPrefix(lastLine(out), want) {
		return fmt.Errorf("programs: the last line is %q, want %q", lastLine(out), want)
	}
	// So few programs do not cover all that is restorable, and the command then fails.
	if a.simulated() {
		return nil
	}
	return err
}

func machine(a *Attempt) error {
	var failed []error
	note := func(what string, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", what, err))
		}
	}
	if out, err := a.run(nil, "uname", "-srm"); err == nil {
		a.row("kernel", "%s", strings.TrimSpace(out))
	}
	if !a.simulated() {
		out, err := a.run(nil, "nvidia-smi")
		note("nvidia-smi", err)
		a.row("nvidia-smi", "%d lines in the log", strings.Count(out, "\n"))
	}
	for _, lib := range []string{interpose.LibraryName, "libmedusa.so"} {
		out, err := a.run(nil, "ldd", a.path("lib", lib))
		if strings.Contains(out, "not found") {
			err = fmt.Errorf("a library is not found: %s", out)
		}
		note("ldd "+lib, err)
		a.row(lib, "%d libraries, not found: %d", strings.Count(out, "\n"), strings.Count(out, "not found"))
	}
	out, err := a.run(nil, a.path("medusa"), "doctor")
	note("medusa doctor", err)
	a.row("medusa doctor", "%s", lineOf(out, "driver "))
	_, err = a.run(nil, a.path("medusa-probe"))
	note("medusa-probe", err)
	out, err = a.run([]string{"SIMGPU_LOG=/dev/null"}, a.path("conformance"))
	note("conformance", err)
	a.row("conformance", "%s", lastLine(out))
	for line := range strings.Lines(out) {
		if name, complaint, failed := strings.Cut(line, "FAILED: "); failed {
			a.row(strings.TrimSpace(strings.SplitN(name, "|", 2)[0]), "%s", strings.TrimSpace(complaint))
		}
	}
	for name, region := range map[string]interpose.Region{"default": interpose.DefaultRegion, "stretched": interpose.StretchedRegion} {
		note("region "+name, a.region("region at "+fmt.Sprintf("%#x", region.Base), region, nil))
	}
	for _, first := range []string{"libnvidia-ml.so.1", a.path("lib", "libmedusa.so")} {
		note("region after "+filepath.Base(first), a.region("after "+filepath.Base(first), interpose.DefaultRegion, []string{"OPEN_FIRST=" + first}))
	}
	note("process_vm_readv", readOwnMemory(a))
	return joined(failed)
}

// region asks for a region as a restored start does: at that base or not at all.
func (a *Attempt) region(what string, r interpose.Region, env []string) error {
	got, err := a.inRegion(r, env)
	if err == nil && (got["state"] != "1" || got["base"] != fmt.Sprint(r.Base)) {
		err = fmt.Errorf("state %s, base %s, asked for %d", got["state"], got["base"], r.Base)
	}
	a.row(what, "state %s (1: honoured), base %s", got["state"], got["base"])
	return err
}

// asked is the environment of a process that asks for a region, as a restored start does.
func (k *Kit) asked(r interpose.Region) []string {
	return []string{"LD_PRELOAD=" + k.path("lib", interpose.LibraryName), "MEDUSA_MODE=replay", fmt.Sprintf("MEDUSA_EXACT=%#x:%#x", r.Base, r.Size)}
}

// inRegion returns the answers of the test program `exact` about its memory, by name.
func (a *Attempt) inRegion(r interpose.Region, env []string, args ...string) (map[string]string, error) {
	out, err := a.run(append(a.asked(r), env...), append([]string{a.path("exact"), "1"}, args...)...)
	return named(out), err
}

// named reads lines of a name and a value; of equal names the last one counts.
func named(text string) map[string]string {
	got := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			got[name] = value
		}
	}
	return got
}

// memory fills the device three times: as the driver likes it, in a region, and in one with gaps.
func memory(a *Attempt) error {
	env := sized(a.Kit, nil, []string{"SIMGPU_MEMORY=141G", "SIMGPU_COMPUTE=off"})
	for _, c := range []struct {
		name   string
		region interpose.Region
		seed   int
	}{{"driver", interpose.Region{}, 0}, {"region", interpose.DefaultRegion, 0}, {"region with gaps", interpose.StretchedRegion, 7}} {
		more := env
		if c.region.Size != 0 {
			trace := filepath.Join(a.Work, fmt.Sprintf("memory-%d.trace", c.seed))
			os.Remove(trace)
			more = append([]string{"LD_PRELOAD=" + a.path("lib", interpose.LibraryName), "MEDUSA_MODE=record", "MEDUSA_TRACE=" + trace,
				fmt.Sprintf("MEDUSA_EXACT=%#x:%#x", c.region.Base, c.region.Size), fmt.Sprintf("MEDUSA_GAP_SEED=%d", c.seed)}, env...)
		}
		began := time.Now()
		out, err := a.run(more, a.path("large"), "10", "8")
		got := named(out)
		a.row(c.name, "%s bytes of device memory filled in %.2f s, last at %s", got["total"], time.Since(began).Seconds(), got["at"])
		if err == nil {
			err = filled(out, c.region)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}
