// Package start is the part of a start that test engines with a session have in common.
package start

import (
	"errors"

	"medusa/restore"
)

// Graphs are the restored graphs by batch size, or nil once capture has made them in this process. ask is the session's Graphs,
// with the engine's work around it. Fails: with capture's error, and with one of ask that is no fallback.
func Graphs(ask func() ([]*restore.Graph, error), capture func() error) (map[int64]*restore.Graph, error) {
	graphs, err := ask()
	var fallback *restore.Fallback
	switch {
	case err == nil && graphs != nil:
		restored := make(map[int64]*restore.Graph, len(graphs))
		for _, g := range graphs {
			restored[g.Batch()] = g
		}
		return restored, nil
	case err == nil || errors.As(err, &fallback):
		return nil, capture()
	}
	return nil, err
}
