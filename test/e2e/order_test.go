package e2e

import (
	"reflect"
	"testing"

	"medusa/restore/status"
	"medusa/test/testenv"
)

// A driver promises no order in which a graph lists its nodes and edges. The runs record-a and record-b may get different ones.
func TestNodesAndEdgesInAnyOrder(t *testing.T) {
	zoo := testenv.Path(t, "build", "zoo")
	for _, order := range []string{"created", "reversed", "shuffled"} {
		t.Run(order, func(t *testing.T) {
			variables := []string{"SIMGPU_GRAPH_ORDER=" + order}
			path, art := zooArtifact(t, variables)
			if len(art.Spec.Graphs) == 0 {
				t.Fatal("no graph was recorded")
			}
			want := output(t, "zoo", must(t, variables, "zoo"))
			p, st := started(t, variables, nil, path, []string{zoo})
			if st.Status != status.Restored {
				t.Fatalf("native start: %s %s\n%s", st.Reason, st.Detail, p.stderr)
			}
			if got := output(t, "zoo", p); !reflect.DeepEqual(got, want) {
				t.Errorf("outputs %v, natively %v", got, want)
			}
		})
	}
}
