package doctor

import (
	"fmt"
	"io"
	"strings"

	"medusa/inspect"
	"medusa/internal/printable"
)

// WriteTable writes the report as tables.
func (r *Report) WriteTable(w io.Writer) error {
	t := printable.NewTable(w)
	row := func(a, b, c string) { t.Row("%s\t%s\t%s", a, b, c) }
	row("PART", "STATE", "DETAIL")
	for _, p := range r.Parts {
		state := "ok"
		if !p.OK {
			state = "fails"
		}
		row(p.Name, state, strings.TrimSpace(p.Path+" "+p.Detail))
	}
	if r.GPU != nil {
		for _, d := range r.GPU.Devices {
			detail := fmt.Sprintf("%s, compute capability %s, %d SMs, %s", d.Name, d.ComputeCapability, d.SMCount, inspect.Bytes(d.Memory))
			if d.Free > 0 {
				detail += fmt.Sprintf(", %s free", inspect.Bytes(d.Free))
			}
			row(fmt.Sprintf("device %d", d.Ordinal), "", detail)
		}
		for i, f := range r.GPU.Features {
			if i == 0 {
				row("", "", "")
				row("FEATURE", "STATE", "NEEDED BY, SINCE")
			}
			detail := fmt.Sprintf("%s, CUDA %s", f.Need, Version(f.Since))
			if f.Detail != "" {
				detail += ": " + f.Detail
			}
			row(f.Name, string(f.State), detail)
		}
	}
	for i, s := range r.TooWide {
		if i == 0 {
			row("", "", "")
			row("PRIVILEGES", "TOO WIDE", "WHAT (THE POD'S SETTING)")
		}
		row("", "", s)
	}
	for i, v := range r.Artifacts {
		if i == 0 {
			row("", "", "")
			row("ARTIFACT", "RESTORES", "WHY")
		}
		row(v.File, v.Restores, "")
		for _, s := range v.Reasons {
			row("", "", s)
		}
		for _, s := range v.Noted {
			row("", "", "noted: "+s)
		}
		if len(v.Unchecked) > 0 && v.Restores != No {
			row("", "", "not compared without an engine (medusa identity --against): "+strings.Join(v.Unchecked, ", "))
		}
	}
	return t.Flush()
}
