package supervisor_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"medusa/artifacts"
	"medusa/artifacts/bundled"
	"medusa/graphir"
	"medusa/test/testenv"
)

// Whole processes: the medusa command with artifacts that strangers may have made.

// stranger returns an artifact with directories at the given recorded paths, which each hold a file of zeros, for the GPU.
func stranger(t *testing.T, gpu string, size int, paths map[string]string) string {
	t.Helper()
	from, path := t.TempDir(), filepath.Join(t.TempDir(), "x.medusa")
	if err := os.WriteFile(filepath.Join(from, "payload"), make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := &graphir.Spec{Allocations: []graphir.Allocation{{Kind: graphir.AllocDevice, Owner: graphir.OwnerEngine, Size: 4096, Live: true}},
		Sequence: []graphir.Step{{Alloc: 0}}}
	a := artifacts.Artifact{Spec: spec, Identity: artifacts.Identity{{Key: artifacts.KeyGPUName, Value: gpu}}}
	for name, recorded := range paths {
		packed, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer packed.Close()
		l, err := bundled.Pack(name, from, packed, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.Path = recorded
		a.Directories = append(a.Directories, l)
	}
	if err := artifacts.Write(path, &a); err != nil {
		t.Fatal(err)
	}
	return path
}

const thisGPU = "Simulated GPU"

// restored is a medusa command with a cache and a temporary directory of its own.
type restored struct {
	cache, tmp string
	env        []string
}

func newRestored(t *testing.T) restored {
	testenv.Build(t, "lib", "bin")
	return restored{cache: t.TempDir(), tmp: t.TempDir()}
}

func (r *restored) command(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	if argv[0] == "medusa" {
		cmd = exec.Command(testenv.Path(t, "build", "medusa"), argv[1:]...)
	}
	cmd.Env = append(testenv.Simulated(t, r.env...), "MEDUSA_CACHE="+r.cache, "TMPDIR="+r.tmp)
	for _, c := range bundled.Caches {
		cmd.Env = append(cmd.Env, c.Variable+"=")
	}
	return cmd
}

func (r *restored) run(t *testing.T, argv ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := r.command(t, argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

// payloads counts the files of an artifact's directories below a folder.
func payloads(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err == nil && e.Name() == "payload" {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// recordedCaches returns the path of a folder that a recording run could have had its caches in, and that is not there.
func recordedCaches(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(bundled.CachesDir, bundled.CachesPrefix)
	if err == nil {
		err = os.Remove(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A path that an artifact names is not written to, unless it is that of a recorded cache. The cache of artifacts is.
func TestRecordedPathsAreNotWritten(t *testing.T) {
	r := newRestored(t)
	target := filepath.Join(t.TempDir(), "cron.d")
	caches := recordedCaches(t)
	t.Cleanup(func() { os.RemoveAll(caches + "0") })
	for _, row := range []struct {
		name, recorded string
		inCache        int
		says           string // on standard error
		prints         string // by the engine
	}{
		{"cron", target, 0, "directory cron: stays packed (--dir cron=PATH unpacks it; it was recorded at \"" + target + "\")", "unset"},
		{"triton", target, 1, "(--dir triton=PATH puts it elsewhere; it was recorded at \"" + target + "\")", r.cache + "/unpacked/"},
		{"triton", caches + "0/a/triton", 1, "--dir triton=PATH", r.cache + "/unpacked/"},
		{"triton", caches + "x/triton", 1, "--dir triton=PATH", r.cache + "/unpacked/"},
		{"triton", caches + "/vllm", 1, "--dir triton=PATH", r.cache + "/unpacked/"},
		{"triton", caches + "/triton", 1, "", caches + "/triton"},
	} {
		if err := os.RemoveAll(filepath.Join(r.cache, "unpacked")); err != nil {
			t.Fatal(err)
		}
		path := stranger(t, thisGPU, 1, map[string]string{row.name: row.recorded})
		out, errs, code := r.run(t, "medusa", "restore", path, "--", "sh", "-c", `echo ${TRITON_CACHE_DIR:-unset}; ls -l "$TRITON_CACHE_DIR/payload" >/dev/null`)
		if !strings.HasPrefix(out, row.prints) || !strings.Contains(errs, row.says) || row.says == "" && strings.Contains(errs, "directory") ||
			row.prints != "unset" && code != 0 {
			t.Errorf("%s at %s: exit code %d, printed %q, said %q", row.name, row.recorded, code, out, errs)
		}
		if n := payloads(t, r.cache); n != row.inCache {
			t.Errorf("%s at %s: %d files in the cache, want %d", row.name, row.recorded, n, row.inCache)
		}
		for _, path := range []string{target, caches, caches + "0", caches + "x"} {
			if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s at %s: %s: %v", row.name, row.recorded, path, err)
			}
		}
	}
	place := filepath.Join(t.TempDir(), "mine")
	path := stranger(t, thisGPU, 1, map[string]string{"cron": target})
	if _, errs, code := r.run(t, "medusa", "restore", path, "--dir", "cron="+place, "--", "true"); code != 0 || payloads(t, place) != 1 {
		t.Errorf("a place of the user's: exit code %d, said %q", code, errs)
	}
}

// No directory is placed for an engine that does not exist, for another GPU, or beyond the limit of the cache.
func TestNothingIsPlaced(t *testing.T) {
	r := newRestored(t)
	place := filepath.Join(t.TempDir(), "mine")
	for _, row := range []struct {
		name, gpu string
		size      int
		limit     string
		dirs      []string
		argv      []string
		strict    bool
		code      int
		says      string
	}{
		{"no engine", thisGPU, 1, "", nil, []string{"no-such-engine"}, false, 127, "no-such-engine"},
		{"no engine, place", thisGPU, 1, "", []string{"--dir", "triton=" + place}, []string{"no-such-engine"}, false, 127, "no-such-engine"},
		{"another GPU", "Another GPU", 1, "", nil, []string{"true"}, false, 0, "gpu.name: want \"Another GPU\", got \"Simulated GPU\""},
		{"another GPU, place", "Another GPU", 1, "", []string{"--dir", "triton=" + place}, []string{"true"}, false, 0, "directories stay packed"},
		{"another GPU, strict", "Another GPU", 1, "", nil, []string{"echo", "served"}, true, 3, "gpu.name"},
		{"bomb", thisGPU, 64 << 20, "1M", nil, []string{"true"}, false, 0, "larger than the cache may grow"},
		{"bomb, strict", thisGPU, 64 << 20, "1M", nil, []string{"echo", "served"}, true, 1, "larger than the cache may grow"},
	} {
		path := stranger(t, row.gpu, row.size, map[string]string{"triton": recordedCaches(t) + "/triton"})
		r.env = []string{"MEDUSA_CACHE_LIMIT=" + row.limit}
		args := append([]string{"medusa", "restore", path}, row.dirs...)
		if row.strict {
			args = append(args, "--strict")
		}
		out, errs, code := r.run(t, append(append(args, "--"), row.argv...)...)
		if code != row.code || !strings.Contains(errs, row.says) || row.strict && out != "" {
			t.Errorf("%s: exit code %d, printed %q, said %q", row.name, code, out, errs)
		}
		if n := payloads(t, r.cache); n != 0 {
			t.Errorf("%s: %d files in the cache", row.name, n)
		}
		if _, err := os.Lstat(place); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: at the place: %v", row.name, err)
		}
	}
}

// A note in a folder that others can write to is not trusted, and a folder of the cache that others can write to is not used.
func TestPlantedNote(t *testing.T) {
	r := newRestored(t)
	place := t.TempDir()
	path := stranger(t, thisGPU, 1, map[string]string{"triton": recordedCaches(t) + "/triton"})
	dirs := []string{"medusa", "restore", path, "--dir", "triton=" + place, "--", "true"}
	for _, planted := range []bool{false, true} {
		if planted {
			if err := errors.Join(os.Remove(filepath.Join(place, "payload")), os.Chmod(place, 0o777)); err != nil {
				t.Fatal(err)
			}
		}
		if _, errs, code := r.run(t, dirs...); code != 0 || payloads(t, place) != 1 {
			t.Errorf("planted %v: exit code %d, said %q", planted, code, errs)
		}
	}
	if _, errs, code := r.run(t, "medusa", "restore", path, "--", "true"); code != 0 || payloads(t, r.cache) != 1 {
		t.Fatalf("exit code %d, said %q", code, errs)
	}
	folders, err := filepath.Glob(filepath.Join(r.cache, "unpacked", "*"))
	if err != nil || len(folders) != 1 {
		t.Fatal(folders, err)
	}
	if err := os.Chmod(folders[0], 0o777); err != nil {
		t.Fatal(err)
	}
	out, errs, code := r.run(t, "medusa", "restore", path, "--", "sh", "-c", "echo ${TRITON_CACHE_DIR:-unset}")
	if code != 0 || out != "unset\n" || !strings.Contains(errs, "others can write to it") {
		t.Errorf("exit code %d, printed %q, said %q", code, out, errs)
	}
}

// Only the command line decides a start: variables of single runs do not reach the engine.
func TestInheritedVariables(t *testing.T) {
	r := newRestored(t)
	path := stranger(t, thisGPU, 1, nil)
	r.env = []string{"MEDUSA_CHECK_OUT=/x", "MEDUSA_SELFTEST_OUT=/x", "MEDUSA_CHECK_PLAN=/x", "MEDUSA_STRICT=1", "MEDUSA_LAZY=1", "MEDUSA_KV_BYTES=1",
		"MEDUSA_RUN=check", "MEDUSA_AT_READY=exit", "MEDUSA_TRACE=/x", "MEDUSA_RANK=3", "MEDUSA_WORLD_SIZE=4", "MEDUSA_BEGAN=5"}
	out, errs, code := r.run(t, "medusa", "restore", path, "--", "sh", "-c", "env | grep ^MEDUSA_ | sed 's/=.*//' | sort | tr '\n' ' '")
	want := "MEDUSA_ARTIFACT MEDUSA_BEGAN MEDUSA_CACHE MEDUSA_CHECK MEDUSA_EXACT MEDUSA_MODE MEDUSA_RANK MEDUSA_RENDEZVOUS MEDUSA_RUN MEDUSA_STATUS MEDUSA_UNMARKED MEDUSA_WORLD_SIZE "
	if code != 0 || strings.Replace(out, "MEDUSA_EXACT ", "", 1) != strings.Replace(want, "MEDUSA_EXACT ", "", 1) {
		t.Errorf("exit code %d, said %q, engine has\n%s, want\n%s", code, errs, out, want)
	}
}

// The output of a reference engine with graphs of its own is its last line on standard output.
func engineOf(t *testing.T) []string {
	return []string{testenv.Path(t, "build", "reference"), "run", "--model", testenv.Path(t, "runners", "reference", "models", "tiny"), "--batch-sizes", "1",
		"--batches", "1:2", "-o", "json"}
}

// A restored start does not count as a native one on a full disk; with --strict it does not begin to serve there.
func TestFullDisk(t *testing.T) {
	r := newRestored(t)
	path := filepath.Join(t.TempDir(), "x.medusa")
	if _, errs, code := r.run(t, append([]string{"medusa", "materialize", "-o", path, "--"}, engineOf(t)...)...); code != 0 {
		t.Fatal(errs)
	}
	// Two full disks, since a container may forbid the first: one of 4 KiB, and one that takes no folder.
	tmpfs := func(size string) []string {
		return []string{"unshare", "-rm", "sh", "-c", `mount -t tmpfs -o size=` + size + ` full "$TMPDIR" && exec "$@"`, "sh"}
	}
	disks := map[string][]string{"no folder": {"env", "TMPDIR=/proc"}}
	_, _, code := r.run(t, append(tmpfs("4k"), "true")...)
	mounts := code == 0
	if mounts {
		disks["4 KiB"] = tmpfs("4k")
	}
	medusa := testenv.Path(t, "build", "medusa")
	for name, disk := range disks {
		out, errs, code := r.run(t, slices.Concat(disk, []string{medusa, "restore", path, "--"}, engineOf(t))...)
		if code != 0 || !strings.Contains(out, "restored") || strings.Contains(errs, "native start") ||
			strings.Count(errs, "medusa: prepare folder for this start") != 1 {
			t.Errorf("%s: exit code %d, printed %q, said %q", name, code, out, errs)
		}
		out, errs, code = r.run(t, slices.Concat(disk, []string{medusa, "restore", "--strict", path, "--"}, engineOf(t))...)
		if code != 1 || out != "" || !strings.Contains(errs, "prepare folder for this start") {
			t.Errorf("%s, strict: exit code %d, printed %q, said %q", name, code, out, errs)
		}
	}
	// A disk that fills up only after the start began: the engine serves, and medusa says that its result is not known.
	for _, option := range []string{"--strict", "--check=none"} {
		if !mounts {
			break // TestUnwrittenStatus has the rest of it
		}
		later := []string{medusa, "restore", option, path, "--", "sh", "-c", `cat /dev/zero >"$TMPDIR/fill" 2>/dev/null; exec "$@"`, "sh"}
		out, errs, code := r.run(t, slices.Concat(tmpfs("64k"), later, engineOf(t))...)
		if code != 0 || !strings.Contains(out, "restored") || strings.Contains(errs, "without a session") || !strings.Contains(errs, "whether the engine restored is not known") {
			t.Errorf("%s, full later: exit code %d, printed %q, said %q", option, code, out, errs)
		}
	}
	// A status that cannot be written is said before.
	nowhere := filepath.Join(t.TempDir(), "none", "status.json")
	if out, errs, code := r.run(t, "medusa", "restore", "--strict", "--status", nowhere, path, "--", "echo", "served"); code != 1 || out != "" {
		t.Errorf("status nowhere, strict: exit code %d, printed %q, said %q", code, out, errs)
	}
	if out, errs, code := r.run(t, "medusa", "restore", "--status", nowhere, path, "--", "echo", "served"); code != 0 || out != "served\n" || strings.Count(errs, "prepare status") != 1 {
		t.Errorf("status nowhere: exit code %d, printed %q, said %q", code, out, errs)
	}
}

// killed starts a command whose engine prints its process id, and kills it without a chance to tidy up.
func (r *restored) killed(t *testing.T, argv ...string) (engine int) {
	t.Helper()
	pid := filepath.Join(t.TempDir(), "pid")
	cmd := r.command(t, append(argv, "--", "sh", "-c", `echo $$ >"$0.part"; mv "$0.part" "$0"; exec sleep 60`, pid)...)
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if data, err := os.ReadFile(pid); err == nil {
			if engine, err = strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
				t.Fatal(err)
			}
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Kill(); err != nil || engine == 0 {
		t.Fatal(engine, err)
	}
	_ = cmd.Wait()
	return engine
}

// runs says whether a process is there that has not ended.
func runs(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ")
}

// An engine ends with a killed medusa, and the next command removes the remains of that one.
func TestKilled(t *testing.T) {
	r := newRestored(t)
	caches := recordedCaches(t)
	path := stranger(t, thisGPU, 1, map[string]string{"triton": caches + "/triton"})
	for _, argv := range [][]string{{"medusa", "restore", path}, {"medusa", "materialize", "-o", filepath.Join(t.TempDir(), "y.medusa")}} {
		engine := r.killed(t, argv...)
		ends := time.Now().Add(5 * time.Second)
		for runs(engine) && time.Now().Before(ends) {
			time.Sleep(10 * time.Millisecond)
		}
		if runs(engine) {
			t.Errorf("%s: the engine runs on", argv[1])
			_ = syscall.Kill(engine, syscall.SIGKILL)
		}
		before, _ := filepath.Glob(filepath.Join(bundled.CachesDir, bundled.CachesPrefix+"*"))
		left, err := os.ReadDir(r.tmp)
		if err != nil || len(left) == 0 {
			t.Fatalf("%s: %v: a killed command leaves nothing, so this test shows nothing", argv[1], err)
		}
		if out, errs, code := r.run(t, "medusa", "restore", path, "--", "sh", "-c", "echo $TRITON_CACHE_DIR"); code != 0 || out != caches+"/triton\n" {
			t.Errorf("%s: then exit code %d, printed %q, said %q", argv[1], code, out, errs)
		}
		if left, err := os.ReadDir(r.tmp); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v %v", argv[1], left, err)
		}
		if _, err := os.Lstat(caches); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: caches are left: %v (before: %v)", argv[1], err, before)
		}
	}
}

// A kill between making a link and giving it its name stops no later start, even one with the same process id.
func TestKilledBetweenLinkAndName(t *testing.T) {
	r := newRestored(t)
	caches := recordedCaches(t)
	path := stranger(t, thisGPU, 1, map[string]string{"triton": caches + "/triton"})
	own := []string{"unshare", "-rpf"}
	if _, _, code := r.run(t, append(own, "true")...); code != 0 {
		testenv.Skip(t, testenv.Processes)
	}
	if err := os.Mkdir(caches, 0o700); err != nil {
		t.Fatal(err)
	}
	for pid := 1; pid < 20; pid++ {
		if err := os.Symlink("/nowhere", fmt.Sprintf("%s/triton.%d", caches, pid)); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, code := r.run(t, append(own, testenv.Path(t, "build", "medusa"), "restore", path, "--", "sh", "-c", "cat $TRITON_CACHE_DIR/payload | wc -c")...)
	if code != 0 || strings.TrimSpace(out) != "1" {
		t.Errorf("exit code %d, printed %q, said %q", code, out, errs)
	}
}

// stubborn is an engine that starts two processes in sessions of their own, one of them an orphan. They ignore every signal that can be
// ignored, and a file holds all process ids.
const stubborn = `
	child='trap "" TERM INT HUP QUIT USR1; echo $$ >>"$1"; while :; do sleep 1; done'
	echo $$ >>"$0.part"
	setsid sh -c "$child" sh "$0.part" &
	(setsid sh -c "$child" sh "$0.part" &)
	while [ $(wc -l <"$0.part") -lt 3 ]; do sleep 0.01; done
	mv "$0.part" "$0"
	trap 'exit 9' TERM
	while :; do sleep 0.05; done`

// pidsIn waits for the process ids in a file.
func pidsIn(t *testing.T, path string) (pids []int) {
	t.Helper()
	for range 1000 {
		data, err := os.ReadFile(path)
		if err != nil || !bytes.HasSuffix(data, []byte("\n")) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		for _, line := range strings.Fields(string(data)) {
			pid, err := strconv.Atoi(line)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		}
		return pids
	}
	t.Fatalf("%s is not there", path)
	return nil
}

// A killed medusa leaves no process of its engine, even if these resist.
func TestKilledEndsTheWholeEngine(t *testing.T) {
	r := newRestored(t)
	path := stranger(t, thisGPU, 1, nil)
	for _, argv := range [][]string{{"medusa", "restore", path}, {"medusa", "materialize", "-o", filepath.Join(t.TempDir(), "y.medusa")}} {
		file := filepath.Join(t.TempDir(), "pids")
		cmd := r.command(t, append(argv, "--", "sh", "-c", stubborn, file)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pids := pidsIn(t, file)
		if err := cmd.Process.Kill(); err != nil || len(pids) != 3 {
			t.Fatal(pids, err)
		}
		_ = cmd.Wait()
		ends := time.Now().Add(10 * time.Second)
		for slices.ContainsFunc(pids, runs) && time.Now().Before(ends) {
			time.Sleep(10 * time.Millisecond)
		}
		for i, pid := range pids {
			if runs(pid) {
				t.Errorf("%s: process %d of %v runs on", argv[1], i, pids)
			}
		}
	}
}

// If the guard is killed instead, the kernel ends the engine's process, and the command says 137.
func TestKilledGuard(t *testing.T) {
	r := newRestored(t)
	file := filepath.Join(t.TempDir(), "pids")
	cmd := r.command(t, "medusa", "restore", stranger(t, thisGPU, 1, nil), "--", "sh", "-c", stubborn, file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	engine := pidsIn(t, file)[0]
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", engine))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := strconv.Atoi(strings.Fields(string(stat))[3])
	if err != nil || guard == cmd.Process.Pid {
		t.Fatal(guard, err)
	}
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 137 {
		t.Error(err)
	}
	for ends := time.Now().Add(5 * time.Second); runs(engine); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(ends) {
			t.Fatal("the engine runs on")
		}
	}
}

// A terminal's signals reach the engine once, by the terminal, and stop and continue it with the command. After
// SIGTERM, the engine ends as it likes.
func TestSignalsReachTheEngine(t *testing.T) {
	r := newRestored(t)
	path := stranger(t, thisGPU, 1, nil)
	file := filepath.Join(t.TempDir(), "pids")
	// It waits in a builtin that is woken again and again, and starts no program once the file is there: while dash starts one by vfork, it
	// loses signals, and does not stop if the child does. A signal that comes just before the builtin waits is seen when it wakes. Both
	// signals may come at once. dash then begins the second trap before the first one's command, so no trap may exit, and the order is open.
	engine := `trap 'echo INT' INT; trap 'echo TERM; end=7' TERM; mkfifo "$0.wait"; exec 9<>"$0.wait"
		{ while echo; do sleep 0.05; done >"$0.wait"; } 9<&- &
		echo $$ >"$0"; while [ -z "$end" ]; do read n <&9; done; exit "$end"`
	cmd := r.command(t, "medusa", "restore", path, "--", "sh", "-c", engine, file)
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := pidsIn(t, file)[0]
	group := -cmd.Process.Pid
	stopped := func(want bool) {
		t.Helper()
		for range 500 {
			data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if strings.Contains(string(data), ") T ") == want {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("stopped is not %v", want)
	}
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGINT} {
		if err := syscall.Kill(group, signal); err != nil {
			t.Fatal(err)
		}
		if signal != syscall.SIGINT {
			stopped(signal == syscall.SIGSTOP)
		}
	}
	var exit *exec.ExitError
	err := cmd.Wait()
	if printed := slices.Sorted(strings.Lines(out.String())); !errors.As(err, &exit) || exit.ExitCode() != 7 || !slices.Equal(printed, []string{"INT\n", "TERM\n"}) {
		t.Errorf("%v, printed %q", err, printed)
	}
}
