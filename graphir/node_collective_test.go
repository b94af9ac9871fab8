package graphir_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
)

var calls = []graphir.Collective{
	{Operation: 1, DType: 2, Reduce: 3, Root: 4, Count: 5, Send: graphir.Pointer{Index: 3, Offset: 8}, SendBytes: 20, Recv: graphir.Pointer{Index: 2, Offset: 64}, RecvBytes: 40},
	{Number: 1, Operation: 7, DType: 1, Count: 1 << 40, Send: graphir.Pointer{Index: 0}, SendBytes: 1, Recv: graphir.Pointer{Index: 0}, RecvBytes: 1},
}

// withCalls is handmade with collective calls in place of two nodes of a graph. Its encoding is testdata/collective.graph.
func withCalls() *graphir.Spec {
	s := handmade()
	for i, c := range calls {
		s.Graphs[0].Nodes[3+i] = graphir.Node{Type: graphir.NodeCollective, Params: graphir.NewCollective(c)}
	}
	return s
}

func TestGoldenCollectives(t *testing.T) {
	encoded, err := graphir.Encode(withCalls())
	if err != nil {
		t.Fatal(err)
	}
	file := golden(t, "collective.graph", encoded, false)
	if !bytes.Equal(encoded, file) {
		t.Errorf("encoding changed: %d bytes instead of %d", len(encoded), len(file))
	}
	spec, err := graphir.Decode(file)
	if err != nil || !graphir.Equal(spec, withCalls()) {
		t.Fatalf("decoded as something else: %v", err)
	}
	if !spec.HasCollectives(0) || spec.HasCollectives(1) || !withCalls().HasCollectives(0) || withCalls().HasCollectives(1) {
		t.Error("graphs with collective calls are not told from others")
	}
	cursor := spec.NewCursor()
	g, err := cursor.Graph(0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range calls {
		if got := g.Nodes[3+i].Collective().Call(); got != want {
			t.Errorf("call %d: %v, want %v", i, got, want)
		}
	}
}

// Calls that no compiler writes are refused with a typed error, and also if only a file has them.
func TestWrongCollectives(t *testing.T) {
	call := func(s *graphir.Spec) *graphir.CollectiveNode { return s.Graphs[0].Nodes[3].Collective() }
	again := func(s *graphir.Spec, f func(c *graphir.Collective)) {
		c := calls[0]
		f(&c)
		s.Graphs[0].Nodes[3].Params = graphir.NewCollective(c)
	}
	for want, spoil := range map[string]func(s *graphir.Spec){
		"59 bytes and 2 relocations, for a collective call": func(s *graphir.Spec) { call(s).Params = call(s).Params[:59] },
		"60 bytes and 1 relocations, for a collective call": func(s *graphir.Spec) { call(s).Relocations = call(s).Relocations[:1] },
		"an address of the call has no relocation":          func(s *graphir.Spec) { call(s).Relocations[1].Offset = 48; clear(call(s).Params[48:56]) },
		"a collective call without memory":                  func(s *graphir.Spec) { again(s, func(c *graphir.Collective) { c.RecvBytes = 0 }) },
		"bytes 8+505 of alloc 3, which has 512":             func(s *graphir.Spec) { again(s, func(c *graphir.Collective) { c.SendBytes = 505 }) },
		"alloc 9 of 4":                                      func(s *graphir.Spec) { again(s, func(c *graphir.Collective) { c.Recv.Index = 9 }) },
		"collective call 1 of 2 is missing":                 func(s *graphir.Spec) { s.Graphs[0].Nodes[4].Params = call(s) },
		"a collective call in an embedded graph": func(s *graphir.Spec) {
			s.Children = []graphir.Graph{{Nodes: []graphir.Node{{Type: graphir.NodeCollective, Params: call(s)}}}}
		},
	} {
		s := withCalls()
		spoil(s)
		err := s.Validate()
		var invalid *graphir.ValidationError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
		if data, err := graphir.Encode(s); err == nil {
			t.Errorf("%s: encoded, %d bytes", want, len(data))
		}
	}
}

// Every byte of an encoding changed in turn is decoded, or refused with an error.
func TestDamagedCollectives(t *testing.T) {
	encoded, err := graphir.Encode(withCalls())
	if err != nil {
		t.Fatal(err)
	}
	for i := range encoded {
		for _, bit := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(encoded)
			damaged[i] ^= bit
			spec, err := graphir.Decode(damaged)
			if err != nil {
				continue
			}
			if err := spec.EachGraph(func(_ int, g *graphir.Graph) error {
				for k := range g.Nodes {
					if c := g.Nodes[k].Collective(); c != nil {
						_ = c.Call()
					}
				}
				return nil
			}); err != nil {
				continue
			}
		}
	}
}
