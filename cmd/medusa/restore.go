package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/interpose"
	"medusa/restore/supervisor"
)

func newRestoreCmd() *cobra.Command {
	var o supervisor.Options
	var match, dirs []string
	var relax, addresses string
	cmd := &cobra.Command{
		Use:                   "restore [flags] [ARTIFACT] -- ENGINE [ARG...]",
		DisableFlagsInUseLine: true,
		Short:                 "Start an engine with its graphs restored",
		Long: `Starts the engine and restores the graphs of an artifact, instead of the profile forward, warm-up and capture.

ARTIFACT is a file if it begins with /, ./ or ../ or ends in .medusa. Otherwise it is a digest in the cache (sha256:...) or a
name there, such as the reference by which it was pulled. Without ARTIFACT, $` + contract.EnvArtifact + ` names it. --match takes the artifact of
the cache with the given factors. --auto leaves the choice to the engine's process, which knows its GPU and model; then no
directory is unpacked.

Bundled caches of compilers are unpacked below the cache. Other bundled directories are unpacked only to the place that --dir
names. If the artifact is for another GPU or driver, no directory is unpacked.

An artifact is code. --verify KEY accepts only an artifact that KEY has signed. The policy in the file $` + contract.EnvTrust + ` demands
the same for all starts. Without either, an artifact that was pulled and not verified is used with a warning.

Obstacles (another GPU, driver, model or checkpoint, a damaged file, too little memory, an artifact that is not trusted) are
reported in one line, and the engine starts natively. With --strict the command exits instead: code 3 if the artifact does not
fit or is not trusted, 5 if it is damaged. Otherwise the exit code is the engine's own.

With --pool the engine runs in a process of a medusa pool, if that process is what a new one would be. Otherwise the start is cold, and one line
names the difference. If --pool names the file of a pool, no pool has to run: what the engine spawns begins to import together with the engine.

--weights reads files, or those below a folder, into the page cache while the engine imports, so that the engine does not wait for the disk.

` + contract.EnvOff + `=1 makes every start native, also with --strict. So does an existing file "off" in the cache (with ` + contract.EnvOff + `=/PATH: that file).`,
		Example: `  medusa restore llama.medusa -- reference run --model ./llama
  medusa restore --match model.config=sha256:5e88... --match gpu.name="NVIDIA H200" -- reference run --model ./llama`,
		RunE: func(cmd *cobra.Command, args []string) error {
			own, argv := splitCommand(cmd, args)
			if err := readChoice(&o.Artifact, own, match); err != nil {
				return usageError{err}
			}
			if len(argv) == 0 {
				return usageError{errors.New("restore needs an engine command behind --")}
			}
			var err error
			if o.Dirs, err = readDirs(dirs); err != nil {
				return usageError{err}
			}
			if o.Relax, err = artifacts.ParseRelaxed(relax); err != nil {
				return usageError{err}
			}
			if !slices.Contains([]string{"full", "canary", "none"}, o.Check) {
				return usageError{fmt.Errorf("--check=%s: want full, canary or none", o.Check)}
			}
			if o.Lazy && o.Check != "none" {
				return usageError{errors.New("--lazy builds no graph before ready, so there is none to check: use --check=none")}
			}
			switch addresses {
			case "exact":
			case "relocate":
				o.Relocate = true
			default:
				return usageError{fmt.Errorf("--addresses=%s: want exact or relocate", addresses)}
			}
			library, err := interpose.FindLibrary()
			if err != nil {
				return err
			}
			o.Argv, o.Library = argv, library
			o.Stdin, o.Stdout, o.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			code, err := supervisor.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if code != 0 {
				return childExit(code)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.Artifact.Auto, "auto", false, "let the engine's process choose from the cache")
	verifyFlag(cmd, &o.Verify)
	cmd.Flags().StringArrayVar(&match, "match", nil, "choose from the cache by this factor (KEY=VALUE, repeatable)")
	cmd.Flags().StringArrayVar(&dirs, "dir", nil, "unpack the bundled directory NAME to PATH (NAME=PATH, repeatable)")
	cmd.Flags().StringVar(&relax, "relax", "", "factors that may differ, separated by commas: driver.version, dso.NAME, dso.*")
	cmd.Flags().StringVar(&addresses, "addresses", "exact", "exact: device memory at its recorded addresses if these are free; relocate: always at other addresses")
	cmd.Flags().StringVar(&o.Check, "check", "none", "checks before ready: none, canary (replay every graph once), or full (also hash memory that must stay unchanged)")
	cmd.Flags().BoolVar(&o.Lazy, "lazy", false, "build each graph when it is first used")
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "exit instead of starting natively")
	cmd.Flags().StringVar(&o.Pool, "pool", "", "socket of a medusa pool, which may have a process that has imported the engine; or the file of one: this start has its own")
	cmd.Flags().StringArrayVar(&o.Weights, "weights", nil, "file or folder to read into the page cache while the engine imports (repeatable)")
	cmd.Flags().StringVar(&o.Status, "status", "", "file that receives the start's status as one JSON object (of several ranks, FILE.N is rank N's)")
	return cmd
}

// readChoice allows exactly one way to choose the artifact.
func readChoice(c *supervisor.Choice, own, match []string) error {
	var err error
	if c.Match, err = readFactors(match); err != nil {
		return err
	}
	ways := len(own)
	if c.Auto {
		ways++
	}
	if len(match) > 0 {
		ways++
	}
	if ways == 0 {
		if c.Ref = os.Getenv(contract.EnvArtifact); c.Ref == "" {
			return errors.New("restore needs an artifact, --match, --auto or $" + contract.EnvArtifact)
		}
		return nil
	}
	if ways > 1 {
		return errors.New("restore needs one of artifact, --match and --auto")
	}
	if len(own) == 1 {
		c.Ref = own[0]
	}
	return nil
}

// readDirs reads NAME=PATH pairs and makes the paths absolute.
func readDirs(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range list {
		name, path, found := strings.Cut(text, "=")
		if !found || name == "" || path == "" {
			return nil, fmt.Errorf("--dir %s: want NAME=PATH", text)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("--dir %s: %s is given twice", text, name)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("--dir %s: %w", text, err)
		}
		out[name] = abs
	}
	return out, nil
}
