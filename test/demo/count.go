package main

import (
	"fmt"

	"medusa/artifacts"
	"medusa/restore/status"
	"medusa/test/calllog"
)

// Marks that the reference engine leaves in the call log.
const (
	markProfile   = "profile-forward"
	markReady     = "ready"
	markStepBegin = "decode-step begin"
	markStepEnd   = "decode-step end"
)

// count reads both call logs and returns the claims of the demo's last line, or the first that does not hold.
func (p *players) count(artifact string, native, restored *decoded) (string, error) {
	art, err := artifacts.Read(artifact)
	if err != nil {
		return "", err
	}
	st, err := status.Read(p.status)
	if err != nil {
		return "", err
	}
	if st.Status != status.Restored {
		return "", fmt.Errorf("%w: %s: %s", errNative, st.Reason, st.Detail)
	}
	nlog, err := calllog.Read(native.calls)
	if err != nil {
		return "", err
	}
	rlog, err := calllog.Read(restored.calls)
	if err != nil {
		return "", err
	}
	wanted := 0
	for _, r := range restored.Runs {
		wanted += r.Steps
	}
	profiles, err := profileForwards(nlog, rlog)
	if err != nil {
		return "", err
	}
	captures := calllog.Count(rlog.Entries, "cuStreamBeginCapture")
	eager, replays := decodeSteps(rlog)
	triggers := 0
	for _, t := range art.Spec.Triggers {
		triggers += int(t.Launches)
	}
	before := calllog.Launches(rlog.Between("", markReady))
	switch {
	case calllog.Count(nlog.Entries, "cuStreamBeginCapture") < len(batchSizes()):
		return "", fmt.Errorf("the native engine's log shows too few captures: the log cannot be trusted")
	case captures != 0 || profiles != 0 || eager != 0:
		return "", fmt.Errorf("captures=%d profile_forwards=%d eager_decode_launches=%d in the restored process", captures, profiles, eager)
	case replays != wanted:
		return "", fmt.Errorf("%d graph replays for %d decode steps", replays, wanted)
	case before != triggers:
		return "", fmt.Errorf("%d kernels launched before ready, the artifact lists %d triggering launches", before, triggers)
	case len(art.Spec.Graphs) != len(batchSizes()) || st.Graphs != len(batchSizes()):
		return "", fmt.Errorf("%d graphs in the artifact, %d restored, want %d", len(art.Spec.Graphs), st.Graphs, len(batchSizes()))
	}
	return fmt.Sprintf("device=%s graphs=%d nodes=%d tokens=identical captures=%d profile_forwards=%d eager_decode_launches=%d replays=%d",
		rlog.Device, st.Graphs, st.Nodes, captures, profiles, eager, replays), nil
}

// profileForwards counts the forwards at the profile's size in the restored process. The form of such a forward is
// taken from the native one: its first launch, with its grid, after the engine's mark.
func profileForwards(native, restored *calllog.Log) (int, error) {
	var first *calllog.Entry
	for _, e := range native.Between(markProfile, markReady) {
		if e.Mark == "" && e.Args["kernel"] != "" && e.Args["grid"] != "" {
			first = &e
			break
		}
	}
	if first == nil {
		return 0, fmt.Errorf("the native engine's log shows no profile forward: the log cannot be trusted")
	}
	n := 0
	for _, e := range restored.Between("", markReady) {
		if e.Args["kernel"] == first.Args["kernel"] && e.Args["grid"] == first.Args["grid"] {
			n++
		}
	}
	return n, nil
}

// decodeSteps counts, inside decode steps only, kernels launched one by one and graphs launched.
func decodeSteps(l *calllog.Log) (eager, replays int) {
	inside := false
	for i, e := range l.Entries {
		switch {
		case len(e.Mark) >= len(markStepBegin) && e.Mark[:len(markStepBegin)] == markStepBegin:
			inside = true
		case e.Mark == markStepEnd:
			inside = false
		case inside && e.Mark == "":
			eager += calllog.Launches(l.Entries[i : i+1])
			replays += calllog.Count(l.Entries[i:i+1], "cuGraphLaunch")
		}
	}
	return eager, replays
}
