package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"medusa/internal/printable"
	"medusa/internal/private"
	"medusa/restore/supervisor"
	"medusa/serving/dispatch"
	"medusa/serving/gateway"
)

// besideBodies is the memory that a server takes beside bodies, before it collects garbage more often.
const besideBodies = 96 << 20

func newServeCmd() *cobra.Command {
	var check bool
	var decisions string
	cmd := &cobra.Command{
		Use:   "serve CONFIG",
		Short: "Serve many models on the GPUs of this machine, under a policy",
		Long: `Answers OpenAI's API for the models of a YAML file. Engines are started when requests need them, restored from an artifact if the
file names one, and make room for each other: which request runs next, where, and who goes, is decided by a policy of medusa simulate.

SIGHUP reads the file again. Requests that have arrived are answered as the old file says, later ones as the new one does. A file with a
mistake changes nothing.

SIGTERM lets requests end that are on their way, and stops all engines. However the command ends, no engine stays behind.`,
		Example: `  medusa serve --check serve.yaml
  medusa serve serve.yaml --decisions decisions.jsonl && medusa simulate --replay decisions.jsonl`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := gateway.Load(args[0])
			if err != nil {
				return err
			}
			if err := absent(spec); check && err != nil {
				return err
			} else if err != nil {
				printable.Fprintf(cmd.ErrOrStderr(), "medusa: %v\n", err)
			}
			if check {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: models %d, GPUs %d, policy %s: valid\n", args[0], len(spec.Models), len(spec.GPUs), spec.Policy.Name)
				return err
			}
			// Bodies of requests are most of the server's memory. With more collections it takes little more than they do.
			debug.SetGCPercent(50)
			if os.Getenv("GOMEMLIMIT") == "" {
				debug.SetMemoryLimit(spec.MaxBodies + besideBodies)
			}
			return writingDecisions(decisions, cmd.ErrOrStderr(), func(log *dispatch.Log) error {
				l, err := net.Listen("tcp", spec.Listen)
				if err != nil {
					return fmt.Errorf("serve: %w", err)
				}
				s, err := gateway.New(spec, gateway.Options{Log: log, Out: cmd.ErrOrStderr()})
				if err != nil {
					_ = l.Close()
					return err
				}
				hangup := make(chan os.Signal, 1)
				signal.Notify(hangup, syscall.SIGHUP)
				defer signal.Stop(hangup)
				go reloadAt(hangup, s, args[0], cmd.ErrOrStderr())
				printable.Fprintf(cmd.ErrOrStderr(), "medusa: serving %d models on http://%s\n", len(spec.Models), l.Addr())
				return s.Serve(cmd.Context(), l)
			})
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only check the file")
	cmd.Flags().StringVar(&decisions, "decisions", "", "write each decision to this file")
	return cmd
}

// absent lists the commands and artifacts of a file that do not exist.
func absent(spec *gateway.Spec) error {
	var all []string
	for _, m := range spec.Models {
		if _, err := exec.LookPath(m.Command[0]); err != nil && !strings.Contains(m.Command[0], "{") {
			all = append(all, fmt.Sprintf("model %s: %v", m.Name, err))
		}
		if m.Artifact == "" {
			continue
		}
		if err := (supervisor.Choice{Ref: m.Artifact}).Exists(); err != nil {
			all = append(all, fmt.Sprintf("model %s: artifact: %v", m.Name, err))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("check configuration: %s", strings.Join(all, "; "))
}

// reloadAt reads the file again at each signal. It goes on until the command ends.
func reloadAt(signals <-chan os.Signal, s *gateway.Server, path string, w io.Writer) {
	for range signals {
		spec, err := gateway.Load(path)
		if err == nil {
			err = s.Reload(spec)
		}
		if err != nil {
			printable.Fprintf(w, "medusa: the configuration stays as it is: %v\n", err)
			continue
		}
		printable.Fprintf(w, "medusa: reloaded %s: %d models\n", path, len(spec.Models))
	}
}

// writingDecisions calls run with a log that is written to path as decisions are made, or without one. The server goes on if its log
// fails.
func writingDecisions(path string, w io.Writer, run func(*dispatch.Log) error) error {
	if path == "" {
		return run(nil)
	}
	f, err := private.Create(path)
	if err != nil {
		return fmt.Errorf("write decision log: %w", err)
	}
	disk := dispatch.NewDisk(f, func(err error) {
		printable.Fprintf(w, "medusa: write decision log %s: %v (it ends here, the server goes on)\n", path, err)
	})
	log := dispatch.NewLog(disk)
	err = run(log)
	if failed := errors.Join(log.Close(), disk.Close(), f.Close()); err == nil && failed != nil {
		return fmt.Errorf("write decision log: %w", failed)
	}
	return err
}
