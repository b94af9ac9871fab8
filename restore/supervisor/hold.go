package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"medusa/internal/printable"
)

// Hold prepares a start for an engine whose first process runs already: its plug-in asks for that, if the environment names an artifact and no Medusa
// command has started the engine. Hold writes the variables that the engine's other processes need, as one JSON object in a line (null: the variable is
// unset), and keeps what they use until in ends. What Run does while an engine runs is not done here: nobody starts it again. But an artifact
// that cost the engine its device is set aside.
func Hold(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	d, err := o.openDesk()
	defer d.close()
	if err != nil {
		if o.Strict {
			return fmt.Errorf("prepare start: %w", err)
		}
		printable.Fprintf(o.Stderr, "medusa: %v\n", err)
	}
	d.pipe = "" // nobody reads it
	artifact, cfg, release, err := o.prepare(ctx, d, switchedOff())
	defer release()
	var why *obstacle
	var env []string
	switch {
	case errors.As(err, &why):
		env = o.nativeEnviron(d, why)
	case err != nil:
		return err
	default:
		env = cfg.Environ()
	}
	if err := json.NewEncoder(out).Encode(changes(os.Environ(), env)); err != nil {
		return fmt.Errorf("prepare start: %w", err)
	}
	_, _ = io.Copy(io.Discard, in)
	if artifact != "" && lostDevice(1, d.status) {
		o.setAside(artifact)
	}
	return nil
}

// changes lists the variables by which two environments differ.
func changes(from, to []string) map[string]*string {
	out := map[string]*string{}
	for _, kv := range from {
		name, _, _ := strings.Cut(kv, "=")
		out[name] = nil
	}
	for _, kv := range to {
		name, value, _ := strings.Cut(kv, "=")
		out[name] = &value
	}
	for _, kv := range from {
		name, value, _ := strings.Cut(kv, "=")
		if now := out[name]; now != nil && *now == value && slices.Contains(to, kv) {
			delete(out, name)
		}
	}
	return out
}
