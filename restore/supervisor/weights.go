package supervisor

import (
	"context"
	"errors"

	"medusa/internal/pagecache"
	"medusa/internal/printable"
)

// readWeights begins to read the weights into the page cache: a checkpoint's first bytes are needed only after the engine's imports. The function that it returns
// ends that.
func (o *Options) readWeights() (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// mutant: weights read beside imports
		if _, err := pagecache.Read(ctx, o.Weights); err != nil && !errors.Is(err, context.Canceled) {
			printable.Fprintf(o.Stderr, "medusa: read weights: %v\n", err)
		}
	}()
	return func() {
		stop()
		<-done
	}
}
