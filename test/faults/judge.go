package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"medusa/restore/status"
	"medusa/test/calllog"
)

// optional reports whether a restore may go on if the call fails with the result:
//   - a question whose usual answer is an error,
//   - "not found" if a function is looked for in several libraries,
//   - the interposer's questions for the context and the device of new memory and for the library of a kernel: it needs
//     the answers for the context's end, for a place at an exact address, and for traces,
//   - in a region, the interposer giving back the handle of memory that it has mapped: the mapping stays good.
//
// It may also go on if a call belongs to the hash kernel, which the status says.
func optional(e calllog.Entry, result string, region bool) bool {
	switch baseName(e.Name) {
	case "cuCtxGetCurrent", "cuCtxGetDevice", "cuKernelGetLibrary":
		return true
	case "cuMemRelease":
		return region
	case "cuLibraryGetKernel", "cuKernelGetFunction":
		return result == "CUDA_ERROR_NOT_FOUND"
	}
	return e.Result != "0" && e.Result != "CUDA_SUCCESS"
}

// releases are the calls that give something back, and the count that stays if they fail: the driver itself
// refused to take it.
var releases = map[string][]string{
	"cuMemFree": {"allocations"}, "cuMemFreeHost": {"allocations"}, "cuStreamDestroy": {"streams"}, "cuEventDestroy": {"events"},
	"cuGraphDestroy": {"graphs"}, "cuGraphExecDestroy": {"execs"}, "cuModuleUnload": {"modules"}, "cuLibraryUnload": {"libraries"},
	"cuMemUnmap": {"allocations", "physical"}, "cuMemRelease": {"physical"},
}

// oneMoreOf returns the objects that the driver may count once more. In a region a free asks for the context and waits for work before
// it unmaps: a free that such a call refused is one that the start has reported. An allocation whose place was refused, because the
// question for the device failed, lies on a page of its own, and the start reports it as relocated.
func (e *engine) oneMoreOf(f fault, o *outcome) []string {
	switch name := baseName(f.symbol); name {
	case "cuCtxSynchronize", "cuCtxGetCurrent":
		if e.exact && strings.Contains(o.status.Detail, "cuMemFree") {
			return releases["cuMemUnmap"]
		}
		return nil
	case "cuCtxGetDevice":
		if e.exact && o.status.Addresses == status.Relocated {
			return []string{"allocations", "physical"}
		}
		return nil
	default:
		return releases[name]
	}
}

// spoilt is the message of a start that cannot undo its changes to the engine's memory.
const spoilt = "put back what the engine left"

// verdict is how a fault ended; wrong and leaked describe deviations.
type verdict struct{ ended, wrong, leaked string }

func (v verdict) String() string {
	text := v.ended
	if v.wrong != "" {
		text += ", WRONG: " + v.wrong
	}
	if v.leaked != "" {
		text += ", LEAKED: " + v.leaked
	}
	return text
}

// judge compares the outcome of a start with a fault with a native one, or, if the restore could do without the call, with
// a restored one.
func (e *engine) judge(f fault, o *outcome) verdict {
	if o.err != nil { // a process that did not serve cannot be counted
		return verdict{ended: "failed", wrong: fmt.Sprintf("%v\n%s", o.err, o.stderr)}
	}
	if o.status == nil {
		return verdict{ended: "no status", wrong: "want one\n" + o.stderr}
	}
	v := verdict{ended: fmt.Sprintf("%s %s: %s", o.status.Status, o.status.Reason, o.status.Detail)}
	want, live := status.Native, e.inRegion
	switch {
	case losesContext(f.result), strings.Contains(o.status.Detail, spoilt):
		want, live = status.Sticky, e.live
	case o.status.Status == status.Restored && (f.optional || o.status.Hashing == status.OnHost):
		want, live = status.Restored, e.liveRestored
	}
	if o.status.Status != want {
		v.wrong = "want a start that is " + want
	} else if o.outputs != e.outputs {
		v.wrong = "other outputs than natively"
	}
	if o.live != live {
		for _, kind := range e.oneMoreOf(f, o) {
			live = oneMore(live, kind)
		}
	}
	if o.live != live {
		v.leaked = fmt.Sprintf("holds %q, without the fault %q", o.live, live)
	}
	return v
}

// oneMore adds one to a count of the driver's line "kind=n ...".
func oneMore(live, kind string) string {
	return regexp.MustCompile(`\b`+kind+`=(\d+)`).ReplaceAllStringFunc(live, func(s string) string {
		n, _ := strconv.Atoi(s[len(kind)+1:])
		return fmt.Sprintf("%s=%d", kind, n+1)
	})
}

type tally struct{ faults, wrong, leaked int }

func (t *tally) add(v verdict) {
	t.faults++
	if v.wrong != "" {
		t.wrong++
	}
	if v.leaked != "" {
		t.leaked++
	}
}

func (t *tally) String() string {
	return fmt.Sprintf("faults: %d wrong: %d leaked: %d", t.faults, t.wrong, t.leaked)
}
