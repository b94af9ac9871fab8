package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"medusa/internal/printable"
	"medusa/serving/dispatch"
	"medusa/serving/simulate"
)

func planFromLog(cmd *cobra.Command, args []string, log, profiles string, least float64, format string) error {
	other := len(args) > 0
	cmd.Flags().Visit(func(f *pflag.Flag) {
		other = other || !slices.Contains([]string{"log", "profiles", "least", "output"}, f.Name)
	})
	if other {
		return usageError{errors.New("--log takes no scenario, and of the other flags only --profiles, --least and --output")}
	}
	f, err := os.Open(log)
	if err != nil {
		return fmt.Errorf("plan from decision log: %w", err)
	}
	defer f.Close()
	record, err := dispatch.ReadRecord(f)
	if err != nil {
		return fmt.Errorf("%s: %w", log, err)
	}
	a, err := simulate.Advise(record, profiles, least)
	if err != nil {
		return fmt.Errorf("%s: %w", log, err)
	}
	if format == "json" {
		return printable.JSON(cmd.OutOrStdout(), a)
	}
	return writeAdvice(cmd.OutOrStdout(), log, a)
}

func writeAdvice(w io.Writer, log string, a *simulate.Advice) error {
	printable.Fprintf(w, "%s: %d requests in %.0f s, %d windows of %.0f s\n", log, a.Requests, a.Seconds, a.Windows, a.Window)
	if a.Dropped > 0 {
		printable.Fprintf(w, "%d requests were for models that the last configuration lacks: they are left out\n", a.Dropped)
	}
	t := printable.NewTable(w)
	t.Row("")
	t.Row("model\trequests\tcold starts\tstart s\twakes\tfailures\twaited s\tof a GPU")
	for _, m := range a.Models {
		t.Row("%s\t%d\t%d\t%.2f\t%d\t%d\t%.1f\t%g", m.Name, m.Requests, m.Starts, m.Start, m.Wakes, m.Failures, m.Waiting, m.Memory)
	}
	t.Row("")
	t.Row("as it was\twaited s\tcold starts")
	t.Row("by the log\t%.1f\t%d", a.Logged.Seconds, a.Logged.Cold)
	if a.Follows {
		t.Row("simulated\t%.1f\t%d", a.Simulated.Seconds, a.Simulated.Cold)
		t.Row("")
		t.Row("model\tway\tnow\tsaves s an hour\tcold starts\tcosts\tadvice")
		for _, c := range a.Changes {
			saves, starts := evidence(c)
			t.Row("%s\t%s\t%s\t%s\t%s\t%s\t%s", c.Model, c.Way, map[bool]string{true: "yes", false: "no"}[c.Present], saves, starts, c.Cost, c.Advice)
		}
		if c := a.Together; c != nil {
			saves, starts := evidence(*c)
			t.Row("all that is advised\t\t\t%s\t%s", saves, starts)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if !a.Follows {
		printable.Fprintf(w, "the simulation waits %.1f s, which is too far from the log: nothing is advised\n", a.Simulated.Seconds)
	}
	return nil
}

// evidence are the figures of a change.
func evidence(c simulate.Change) (saves, starts string) {
	if !c.Judged {
		return "–", "–"
	}
	return fmt.Sprintf("%.1f ± %.1f", c.Saves.Mean, c.Saves.Half), fmt.Sprintf("%d → %d", c.Without, c.With)
}
