package inspect

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// table aligns columns. It relies on tabwriter to keep the first error until Flush.
type table struct{ *tabwriter.Writer }

func newTable(w io.Writer) table { return table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

func (t table) row(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// Bytes writes a size with a binary unit and at most four digits.
func Bytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), 0
	for value >= 999.5 && unit < 5 {
		value /= 1024
		unit++
	}
	decimals := 2
	switch {
	case value >= 100:
		decimals = 0
	case value >= 10:
		decimals = 1
	}
	return fmt.Sprintf("%.*f %s", decimals, value, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}[unit])
}
