package openai

import (
	"errors"
	"fmt"
	"net/http"

	"medusa/runners/reference/engine"
)

// metrics writes the memory of the KV cache in the text format of Prometheus. A cache of one size has none.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	size, err := s.Loop.KVSize()
	if err != nil && !errors.Is(err, engine.ErrFixedKV) {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if err != nil {
		return
	}
	for _, m := range []struct {
		name, help string
		value      uint64
	}{
		{"range_bytes", "Reserved addresses of the KV cache.", size.Range},
		{"least_bytes", "Memory of the KV cache that is always mapped.", size.Least},
		{"mapped_bytes", "Memory of the KV cache that is mapped.", size.Mapped},
		{"blocks", "Blocks of the KV cache that are mapped in every layer.", uint64(size.Blocks)},
	} {
		fmt.Fprintf(w, "# HELP medusa_kv_%s %s\n# TYPE medusa_kv_%s gauge\nmedusa_kv_%s %d\n", m.name, m.help, m.name, m.name, m.value)
	}
}
