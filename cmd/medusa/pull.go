package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/artifacts/oci"
	"medusa/artifacts/store"
	"medusa/artifacts/trust"
	"medusa/internal/atomicfile"
	"medusa/internal/contract"
)

func newPullCmd() *cobra.Command {
	var gpu, key, output string
	var match []string
	client := &oci.Client{}
	cmd := &cobra.Command{
		Use:   "pull REGISTRY/REPOSITORY:TAG|@DIGEST [-o FILE]",
		Short: "Fetch an artifact from an OCI registry into the cache",
		Long: `Fetches an artifact into the cache and prints the digest of its file; medusa restore takes that digest, or the reference.
With --verify KEY, or a policy (` + contract.EnvTrust + `) that requires it, only artifacts with a valid signature are fetched. -o FILE also
writes FILE.proof, with the artifact's origin and signature. An interrupted pull continues at its end. If the reference is an
index, the artifact is chosen by --gpu and --match, or else by the GPU of this machine.`,
		Example: "  medusa pull registry.example/llm/llama:v1 --verify release.key.pub\n  medusa restore registry.example/llm/llama:v1 -- reference run --model ./llama",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var o oci.PullOptions
			var err error
			if o.Match, err = readFactors(match); err != nil {
				return usageError{err}
			}
			if gpu != "" {
				o.Match = append(o.Match, artifacts.Factor{Key: artifacts.KeyGPUName, Value: gpu})
			}
			if o.Verify, err = trust.FromEnv(key); err != nil {
				return err
			}
			cache, err := store.FromEnv()
			if err != nil {
				return err
			}
			bar, done := transferBar(cmd.ErrOrStderr(), "pull")
			client.Progress = bar
			pin, _, err := client.Pull(cmd.Context(), args[0], cache, o)
			var ambiguous *oci.AmbiguousError
			if local := localGPU(); errors.As(err, &ambiguous) && ambiguous.Found > 1 && gpu == "" && local != "" {
				o.Match = append(o.Match, artifacts.Factor{Key: artifacts.KeyGPUName, Value: local})
				pin, _, err = client.Pull(cmd.Context(), args[0], cache, o)
			}
			done()
			if err != nil {
				return err
			}
			defer pin.Close()
			if output != "" {
				proofs, err := cache.Proofs(pin.Digest)
				if err != nil {
					return err
				}
				if err := errors.Join(writeOut(bytes.NewReader(proofs), output+trust.Suffix), copyOut(pin.Path, output)); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), pin.Digest)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "also write the artifact to this file")
	cmd.Flags().StringVar(&gpu, "gpu", "", "if the reference is an index: take the artifact for the GPU with this name")
	cmd.Flags().StringArrayVar(&match, "match", nil, "if the reference is an index: take the artifact with this factor (KEY=VALUE, repeatable)")
	verifyFlag(cmd, &key)
	registryFlags(cmd, client)
	return cmd
}

func readFactors(list []string) ([]artifacts.Factor, error) {
	var out []artifacts.Factor
	for _, text := range list {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return nil, fmt.Errorf("--match %s: want KEY=VALUE (medusa identity and medusa inspect show them)", text)
		}
		out = append(out, artifacts.Factor{Key: key, Value: value})
	}
	return out, nil
}

// localGPU returns the name of this machine's GPU from the driver's /proc files, or "" if the machine has GPUs of several kinds.
func localGPU() string {
	files, _ := filepath.Glob("/proc/driver/nvidia/gpus/*/information")
	name := ""
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return ""
		}
		for line := range strings.Lines(string(data)) {
			if model, found := strings.CutPrefix(line, "Model:"); found {
				model = strings.TrimSpace(model)
				if name != "" && name != model {
					return ""
				}
				name = model
			}
		}
	}
	return name
}

// copyOut gives the copy its final name only after all of it is written.
func copyOut(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	defer in.Close()
	return writeOut(in, to)
}

func writeOut(in io.Reader, to string) error {
	if err := atomicfile.Write(to, 0o644, in); err != nil {
		return fmt.Errorf("write %s: %w", to, err)
	}
	return nil
}
