package recording

import (
	"fmt"
	"strings"

	"medusa/interpose/trace"
)

// IdentityKey tells modules apart across processes: by image if the load was seen, or by its place in a shared object
// with a build-id, else by their functions' names.
func (m *Module) IdentityKey() string { return m.key }

func (m *Module) identify() {
	switch {
	case m.Kind == trace.ModuleHidden:
		m.key = "names:" + strings.Join(m.Names, "\n")
	case len(m.SHA256) == 0:
		m.key = fmt.Sprintf("place:%s+%d", m.BuildID, m.DSOOffset)
	default:
		m.key = "image:" + string(m.SHA256)
	}
}

// BaseName is the last part of a path.
func BaseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Describe names the module in errors.
func (m *Module) Describe() string {
	if m.Kind == trace.ModuleHidden {
		return fmt.Sprintf("hidden module with %d functions", len(m.Names))
	}
	if m.DSO != "" {
		return fmt.Sprintf("the module at %#x of %s", m.DSOOffset, BaseName(m.DSO))
	}
	return fmt.Sprintf("module %x", m.SHA256[:min(4, len(m.SHA256))])
}
