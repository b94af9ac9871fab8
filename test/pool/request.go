package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// hashSeeds are those of the pool's engines, and one that no engine has.
var hashSeeds = []string{"11", "22", "33"}

// request is one start, with properties of its own.
type request struct {
	id      int
	token   string
	dir     string // working folder
	out     string // file of the engine's findings
	wanted  wanted
	seed    string // PYTHONHASHSEED
	read    string // READ_BY_IMPORT
	extra   string // a variable that only this request has
	what    string // how it ends: exit, die, signal, wait
	number  int
	kill    string // who is killed while it waits: "", child, caller
	command *exec.Cmd
}

// wanted are the properties that launch.py sets.
type wanted struct {
	Ignored     []int          `json:"ignored"`
	Descriptors map[int]string `json:"descriptors"`
	Umask       int            `json:"umask"`
	Nice        int            `json:"nice"`
	OOM         int            `json:"oom"`
	Core        int            `json:"core"`
	NoFile      int            `json:"nofile"`
	Mask        []int          `json:"mask"`
}

// found has the engine's findings.
type found struct {
	Name, File, Sentinel, Inner, Folder, Input, Read, Set, Pool string
	Argv, Variables                                             []string
	Descriptors                                                 map[int]*string
	Limits                                                      [2][2]int
	Mask, Ignored                                               []int
	Umask, Nice, OOM, Pid                                       int
	Hash                                                        int64
	Random                                                      [2]float64
}

// newRequest chooses the properties of a request.
func (t *test) newRequest(id int, r *rand.Rand) (*request, error) {
	q := &request{id: id, token: fmt.Sprintf("token-%d-%d", id, r.Uint64()), read: "1", seed: hashSeeds[r.IntN(2)], extra: fmt.Sprintf("ONLY_%d", id)}
	q.dir = filepath.Join(t.dir, "requests", strconv.Itoa(id))
	q.out = filepath.Join(q.dir, "found.json")
	if err := os.MkdirAll(q.dir, 0o755); err != nil {
		return nil, err
	}
	if r.IntN(20) == 0 {
		q.seed = hashSeeds[2]
	}
	if r.IntN(20) == 0 {
		q.read = "2"
	}
	q.wanted = wanted{Umask: r.IntN(0o100), Nice: r.IntN(4), OOM: r.IntN(100), Core: r.IntN(1000), NoFile: 300 + r.IntN(300), Descriptors: map[int]string{}}
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGALRM} {
		if r.IntN(2) == 0 {
			q.wanted.Mask = append(q.wanted.Mask, int(s))
		}
	}
	slices.Sort(q.wanted.Mask)
	if r.IntN(3) == 0 { // medusa restore handles SIGINT itself, and starts no engine that ignores it
		q.wanted.Ignored = []int{int(syscall.SIGHUP)}
	}
	for n := 5; n < 10; n++ {
		if r.IntN(2) == 0 {
			path := filepath.Join(q.dir, fmt.Sprint("descriptor-", n))
			if err := os.WriteFile(path, []byte(fmt.Sprint(q.token, " ", n)), 0o644); err != nil {
				return nil, err
			}
			q.wanted.Descriptors[n] = path
		}
	}
	switch k := r.IntN(10); {
	case k < 4:
		q.what, q.number = "exit", r.IntN(80) // 86 asks for another start
	case k < 5:
		q.what, q.number = "die", int([]syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGUSR2, syscall.SIGABRT}[r.IntN(4)])
	case k < 6:
		q.what, q.number = "signal", r.IntN(80)
	case k < 8:
		q.what, q.kill = "wait", "child"
	default:
		q.what, q.kill = "wait", "caller"
	}
	return q, q.prepare(t)
}

func (q *request) prepare(t *test) error {
	properties, err := json.Marshal(q.wanted)
	if err != nil {
		return err
	}
	q.command = exec.Command(t.python, filepath.Join(t.dir, "launch.py"), string(properties), t.medusa, "restore", "--pool", t.socket, "--auto", "--",
		t.python, filepath.Join(t.dir, "engine.py"), q.token, q.what, strconv.Itoa(q.number))
	q.command.Dir = q.dir
	q.command.Env = append(t.environment(q.seed, q.read), "SENTINEL="+q.token, q.extra+"=1", "OUT="+q.out)
	input := filepath.Join(q.dir, "input")
	if err := os.WriteFile(input, []byte("input of "+q.token), 0o644); err != nil {
		return err
	}
	if q.command.Stdin, err = os.Open(input); err != nil {
		return err
	}
	if q.command.Stdout, err = os.Create(filepath.Join(q.dir, "stdout")); err != nil {
		return err
	}
	q.command.Stderr, err = os.Create(filepath.Join(q.dir, "stderr"))
	return err
}

func (q *request) close() {
	for _, f := range []any{q.command.Stdin, q.command.Stdout, q.command.Stderr} {
		_ = f.(*os.File).Close()
	}
}

// check compares the engine's findings with the properties of its caller.
func (q *request) check(t *test, f *found) (wrong []string) {
	say := func(what string, got, want any) {
		if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
			wrong = append(wrong, fmt.Sprintf("request %d: %s: got %s, want %s", q.id, what, a, b))
		}
	}
	say("name", f.Name, "__main__")
	say("file", f.File, filepath.Join(t.dir, "engine.py"))
	say("arguments", f.Argv, []string{filepath.Join(t.dir, "engine.py"), q.token, q.what, strconv.Itoa(q.number)})
	say("sentinel", f.Sentinel, q.token)
	say("sentinel of a process that it started", f.Inner, q.token)
	say("variables", f.Variables, []string{q.extra})
	say("folder", f.Folder, q.dir)
	say("input", f.Input, "input of "+q.token)
	for n := 5; n < 10; n++ {
		got, want := "nothing", "nothing"
		if f.Descriptors[n] != nil {
			got = *f.Descriptors[n]
		}
		if q.wanted.Descriptors[n] != "" {
			want = fmt.Sprint(q.token, " ", n)
		}
		say(fmt.Sprint("descriptor ", n), got, want)
	}
	say("limit of descriptors", f.Limits[0], [2]int{q.wanted.NoFile, q.wanted.NoFile + 1000})
	say("limit of cores", f.Limits[1][0], q.wanted.Core)
	say("mask", f.Mask, q.wanted.Mask)
	say("ignored signals", f.Ignored, q.wanted.Ignored)
	say("umask", f.Umask, q.wanted.Umask)
	say("nice", f.Nice, t.nice+q.wanted.Nice)
	say("oom_score_adj", f.OOM, q.wanted.OOM)
	say("hash", f.Hash, t.hashes[q.seed])
	say("variable that imports read", f.Read, q.read)
	say("variable that imports set", f.Set, "imported")
	return wrong
}

// output describes mistakes in the engine's output.
func (q *request) output(pooled bool) (wrong []string) {
	for name, want := range map[string]string{"stdout": "imported\nout " + q.token + "\n", "stderr": "err " + q.token + "\n"} {
		got, err := os.ReadFile(filepath.Join(q.dir, name))
		// Standard error has a line of medusa's before it if the start is cold, and possibly one behind it.
		if err != nil || name == "stdout" && string(got) != want || !bytes.Contains(got, []byte(want)) {
			wrong = append(wrong, fmt.Sprintf("request %d: %s: got %q, want %q", q.id, name, got, want))
		}
		if cold := strings.Contains(string(got), "medusa: cold start: "); name == "stderr" && cold == pooled {
			wrong = append(wrong, fmt.Sprintf("request %d: pooled %v, and standard error is %q", q.id, pooled, got))
		}
	}
	return wrong
}
