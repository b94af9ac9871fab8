package materialize

import (
	"errors"
	"fmt"

	"medusa/materialize/recording"
)

// MarksError is an engine from whose marks no artifact can be made. It is found in the run profile, which needs only the marks.
type MarksError struct {
	Problem string
	Hint    string // an advice for the engine's author
}

func (e *MarksError) Error() string { return fmt.Sprintf("check marks: %s (%s)", e.Problem, e.Hint) }

// checkMarks finds the mistakes in an engine's marks that later runs would only trip over.
func checkMarks(r *recording.Recording) error {
	if err := checkIdentity(r); err != nil { // mutant: identity is checked after the run profile
		return err
	}
	begin := r.PhaseOrder("warmup", "capture")
	labels := map[string]bool{}
	early := "" // the label of a graph that a restored start would not skip
	for _, g := range r.Graphs {
		switch {
		case g.Execs == 0 || r.Embedded[g.ID]:
		case g.Order < begin:
			early = g.Label // the engine captures it in every start, or has not marked the phase
		case g.Label == "":
			return &MarksError{fmt.Sprintf("graph %d has no label", g.ID), "call medusa_mark_graph on the capturing thread before cuStreamEndCapture"}
		case labels[g.Label]:
			return &MarksError{fmt.Sprintf("two graphs have the label %q", g.Label), "labels must be unique, and the same in every start"}
		default:
			labels[g.Label] = true
		}
	}
	if early != "" && len(labels) == 0 {
		return &MarksError{fmt.Sprintf("graph %q was captured before phase warmup or capture was marked", early),
			"mark warmup, then capture: a restored start skips what comes after them"}
	}
	return nil
}

// unready is the reason why a process that ended in order has not reached ready.
func unready(r *recording.Recording, program string) error {
	if len(r.Phases) == 0 && len(r.Identity) == 0 {
		return &MarksError{fmt.Sprintf("%s ended, and marked neither an identity nor a phase", program),
			"it does not support Medusa, or its plug-in is switched off: docs/engines.md says what an engine has to do, docs/vllm.md and docs/torch.md how to switch a plug-in on"}
	}
	last := "its identity"
	if n := len(r.Phases); n > 0 {
		last = fmt.Sprintf("phase %q", r.Phases[n-1].Name)
	}
	return &MarksError{fmt.Sprintf("%s ended after it had marked %s, and never marked phase \"ready\"", program, last),
		"mark it when the engine is about to serve, in every start; medusa materialize -v shows what the engine printed"}
}

func checkIdentity(r *recording.Recording) error {
	id := identityFactors(r)
	if len(id) == 0 {
		return &MarksError{"the engine stated no identity", "call medusa_session_identify, with the CUDA context current, before the first allocation"}
	}
	if err := id.Validate(); err != nil {
		return &MarksError{err.Error(), "call medusa_session_identify once; it marks the identity itself"}
	}
	return nil
}

// checkAllMarks checks the recordings of all ranks.
func checkAllMarks(ranks []*recording.Recording) error {
	var all error
	for rank, r := range ranks {
		all = errors.Join(all, ofRank(rank, len(ranks), checkMarks(r)))
	}
	return all
}
