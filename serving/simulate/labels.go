package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
)

// labelDomain is the domain of the labels for nodes that should have artifacts. A model's name follows.
const labelDomain = "artifact.medusa.io/"

// The names that Kubernetes accepts for nodes and for labels.
var (
	nodeName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	labelName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	unfit     = regexp.MustCompile(`[^-A-Za-z0-9_.]+`)
)

// label is the label for nodes that should have a model's artifact. If a model's name is not a valid label, for example with a slash, the label has a
// part of its digest, so that two models never have the same label.
func label(model string) string {
	// mutant: names that are no label's
	if labelName.MatchString(model) {
		return labelDomain + model
	}
	sum := sha256.Sum256([]byte(model))
	name := unfit.ReplaceAllString(model, "-")
	return labelDomain + "x" + name[:min(len(name), 50)] + "-" + hex.EncodeToString(sum[:4])
}

// WriteLabels writes the plan's nodes as objects of Kubernetes that have only labels. names are the names of the nodes, in order.
func (p *Plan) WriteLabels(w io.Writer, names []string) error {
	if len(names) != len(p.Nodes) {
		return fmt.Errorf("label nodes: %d names for the %d nodes of the scenario", len(names), len(p.Nodes))
	}
	for i, name := range names {
		if len(name) > 253 || !nodeName.MatchString(name) || slices.Contains(names[:i], name) {
			return fmt.Errorf("label nodes: %q is no node's name, or is there twice", name)
		}
	}
	if _, err := fmt.Fprint(w, "# The artifacts that nodes are to have. Applied on the server's side, by one manager, each plan takes the labels of the one before away:\n"+
		"# kubectl apply --server-side --field-manager medusa-plan -f FILE\n"); err != nil {
		return err
	}
	for i, n := range p.Nodes {
		labels := map[string]bool{}
		for _, m := range n.Models {
			// mutant: labels of planned artifacts
			labels[label(m)] = true
		}
		separator := ""
		if i > 0 {
			separator = "---\n"
		}
		if _, err := fmt.Fprintf(w, "%sapiVersion: v1\nkind: Node\nmetadata:\n  name: %q\n  labels:", separator, names[i]); err != nil {
			return err
		}
		text := " {}\n"
		if len(labels) > 0 {
			text = "\n"
		}
		for _, l := range slices.Sorted(maps.Keys(labels)) {
			text += fmt.Sprintf("    %s: \"true\"\n", l)
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}
