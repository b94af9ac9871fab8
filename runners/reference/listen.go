package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"medusa/runners/reference/engine"
	"medusa/runners/reference/openai"
	"medusa/runners/reference/serve"
)

// grace is the time that requests have to end after SIGTERM, before their clients are left alone.
const grace = 10 * time.Second

func newServe() *cobra.Command {
	var o options
	var listen, name string
	var floor uint64
	cmd := &cobra.Command{
		Use:   "serve --model DIR --listen ADDRESS",
		Short: "Answer requests of OpenAI's API",
		Long: `Answers /v1/completions and /v1/chat/completions, streamed or not, greedily. /v1/models names the model, and /health answers once
requests are taken. After SIGTERM, requests that run have ten seconds to end.

The engine runs no chat template of a checkpoint. A chat becomes a line "ROLE: CONTENT" for each message, and "assistant:".`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if floor != 0 && o.engine.KV != engine.KVElastic {
				return usageError{fmt.Errorf("%d bytes are to stay free beside a KV cache that is not elastic (pass --kv %s)", floor, engine.KVElastic)}
			}
			return o.open(cmd, func(e *engine.Engine) error {
				// Before this, a signal ends the start at once.
				ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
				defer stop()
				port, err := net.Listen("tcp", listen)
				if err != nil {
					return fmt.Errorf("serve: %w", err)
				}
				if name == "" {
					name = filepath.Base(o.engine.Model + o.engine.Preset)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "serving %s on http://%s\n", name, port.Addr())
				return listenAndServe(ctx, e, port, name, serve.Floor{Bytes: floor, Wanted: o.engine.KVMappedBytes}, cmd.ErrOrStderr())
			})
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8000", "`address` to listen on")
	cmd.Flags().StringVar(&name, "served-model-name", "", "`name` of the model for clients (default the name of its directory)")
	cmd.Flags().Uint64Var(&floor, "kv-free-floor", 0, "`bytes` of device memory that an elastic KV cache leaves to other processes: it shrinks and grows")
	return cmd
}

// listenAndServe answers requests until ctx ends or the engine fails. The calling thread is the engine's.
func listenAndServe(ctx context.Context, e *engine.Engine, port net.Listener, name string, floor serve.Floor, log io.Writer) error {
	loop := serve.NewLoop(e)
	api := &openai.Server{Loop: loop, Tokenizer: e.Tokenizer(), Model: name, MaxModelLen: e.MaxModelLen(), Log: log}
	server := &http.Server{Handler: api.Handler(), ReadHeaderTimeout: time.Minute}
	work, end := context.WithCancel(context.Background())
	defer end()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		served <- server.Serve(port)
		cancel()
	}()
	if floor.Bytes != 0 {
		go keepFree(ctx, loop, floor, log)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-loop.Ended():
		}
		limit, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if server.Shutdown(limit) != nil {
			_ = server.Close() // clients that are left end with their connections
		}
		end()
	}()
	err := loop.Run(work)
	<-stopped
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve: %w", failed))
	}
	return err
}

// keepFree has the KV cache give way to other processes. Each change is a line of the log.
func keepFree(ctx context.Context, loop *serve.Loop, floor serve.Floor, log io.Writer) {
	floor.Every = 200 * time.Millisecond
	floor.Told = func(size engine.KVSize, free uint64, err error) {
		if err != nil {
			fmt.Fprintf(log, "KV cache keeps its size: %v\n", err)
			return
		}
		fmt.Fprintf(log, "KV cache has %d bytes, %d blocks: %d bytes of the device were free, the floor is %d\n", size.Mapped, size.Blocks, free, floor.Bytes)
	}
	loop.KeepFree(ctx, floor)
}
