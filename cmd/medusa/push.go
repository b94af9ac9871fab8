package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"medusa/artifacts/oci"
	"medusa/artifacts/trust"
)

func newPushCmd() *cobra.Command {
	var o oci.PushOptions
	var key string
	client := &oci.Client{}
	cmd := &cobra.Command{
		Use:   "push ARTIFACT REGISTRY/REPOSITORY:TAG",
		Short: "Upload an artifact to an OCI registry",
		Long: `Uploads the artifact and prints the manifest's digest. Credentials come from the docker configuration (docker login). With --add the tag names an
index with an entry for each GPU's artifact. With --sign the manifest is signed for pull --verify. --version N is signed too:
a policy can demand a least version, so that nobody can bring back an old artifact.`,
		Example: "  medusa push llama.medusa registry.example/llm/llama:v1 --add --sign release.key",
		Args:    usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" && o.Version > 0 {
				return usageError{errors.New("--version is signed: it needs --sign")}
			}
			if key != "" {
				var err error
				if o.Sign, err = trust.ReadPrivate(key); err != nil {
					return err
				}
			}
			bar, done := transferBar(cmd.ErrOrStderr(), "push")
			client.Progress = bar
			digest, err := client.Push(cmd.Context(), args[0], args[1], o)
			done()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), digest)
			return err
		},
	}
	registryFlags(cmd, client)
	cmd.Flags().BoolVar(&o.Add, "add", false, "add to the index that the tag names")
	cmd.Flags().StringVar(&key, "sign", "", "private key to sign with (PEM, Ed25519)")
	cmd.Flags().Uint64Var(&o.Version, "version", 0, "version number to sign with the artifact, larger than earlier ones (0: none)")
	cmd.Flags().StringVar(&o.Subject, "subject", "", "reference in the same repository that the artifact belongs to, such as the model's image")
	return cmd
}

// registryFlags are those of all commands that talk to registries. docker login stores credentials.
func registryFlags(cmd *cobra.Command, c *oci.Client) {
	cmd.Flags().BoolVar(&c.PlainHTTP, "plain-http", false, "talk to the registry without encryption (a loopback address needs no flag)")
	cmd.Flags().StringVar(&c.CAFile, "ca-file", "", "certificates of authorities that the registry's certificate may come from (PEM)")
}

// transferBar shows a progress bar if standard error is a terminal, and otherwise shows no progress.
func transferBar(w io.Writer, what string) (step func(done, total int64), finish func()) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, func() {}
	}
	bar := progressbar.NewOptions64(-1, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(12), progressbar.OptionShowBytes(true), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	return func(done, total int64) {
		if bar.GetMax64() != total {
			bar.Reset() // the previous file may have been complete already; count the next from 0
			bar.ChangeMax64(total)
		}
		_ = bar.Set64(done) // a bar that cannot be drawn does not stop the transfer
	}, func() { _ = bar.Finish() }
}
