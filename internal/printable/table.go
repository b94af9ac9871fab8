package printable

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Table aligns columns. It relies on tabwriter to keep the first error until Flush.
type Table struct{ *tabwriter.Writer }

// NewTable returns a table whose columns are two spaces apart.
func NewTable(w io.Writer) Table { return Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// Row writes one line. The format has a tab between columns.
func (t Table) Row(format string, args ...any) { Fprintf(t, format+"\n", args...) }

// Fprintf is fmt.Fprintf, but it passes strings through Line and errors through Text.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	for i, a := range args {
		switch v := a.(type) {
		case string:
			// mutant: names in tables are text
			args[i] = Line(v)
		case error:
			// mutant: errors are text
			args[i] = Text(v.Error())
		}
	}
	return fmt.Fprintf(w, format, args...)
}
