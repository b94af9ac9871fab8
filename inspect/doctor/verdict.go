package doctor

import (
	"slices"
	"strings"

	"medusa/artifacts"
	"medusa/artifacts/probe"
	"medusa/graphir"
	"medusa/internal/cuda/probe/result"
)

// Verdict says whether an artifact can be restored here, as far as that is known without an engine.
type Verdict struct {
	File      string   `json:"file"`
	Restores  string   `json:"restores"`  // yes, no, or unknown
	Reasons   []string `json:"reasons"`   // why not, or why it is unknown
	Noted     []string `json:"noted"`     // differences that are noted only, or allowed
	Unchecked []string `json:"unchecked"` // factors that only an engine knows (medusa identity --against)

	Err error `json:"-"` // the file cannot be read
}

// The values of Verdict.Restores.
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

func (v *Verdict) no(reason string) { v.Restores, v.Reasons = No, append(v.Reasons, reason) }

func (r *Report) judge(path string, relaxed artifacts.Relaxed) Verdict {
	v := Verdict{File: path, Restores: Yes, Reasons: []string{}, Noted: []string{}, Unchecked: []string{}}
	art, err := artifacts.Read(path)
	if err != nil {
		v.no(err.Error())
		v.Err = err
		return v
	}
	here := r.factors()
	var want artifacts.Identity
	for _, f := range art.Identity {
		if _, known := here.Get(f.Key); known || device(f.Key) {
			want = append(want, f)
		} else {
			v.Unchecked = append(v.Unchecked, f.Key)
		}
	}
	if here == nil {
		v.Restores, v.Reasons = Unknown, append(v.Reasons, "no device was found to compare with")
		return v
	}
	fits := artifacts.Compare(want, here, relaxed) == nil
	for _, d := range artifacts.Diff(want, here) {
		if fits {
			v.Noted = append(v.Noted, d.String())
		} else {
			v.no(d.String())
		}
	}
	if d := r.GPU.Devices[0]; d.Total != 0 {
		if err := art.KV.Check(d.Total, d.Free); err != nil {
			v.no(err.Error())
		}
	}
	for _, f := range r.GPU.Features {
		used := slices.ContainsFunc(art.Peers, func(p *artifacts.Artifact) bool { return uses(p.Spec, f.Name) }) || uses(art.Spec, f.Name)
		if f.State == result.NotSupported && (f.Need == result.Restore || used) {
			v.no("the driver lacks " + f.Name)
		}
	}
	return v
}

func device(key string) bool {
	return strings.HasPrefix(key, "gpu.") || key == artifacts.KeyDriverVersion
}

// uses says whether a spec needs an optional feature. The names are the probe's.
func uses(s *graphir.Spec, feature string) bool {
	kind := func(kinds ...graphir.AllocKind) bool {
		return slices.ContainsFunc(s.Allocations, func(a graphir.Allocation) bool { return slices.Contains(kinds, a.Kind) })
	}
	switch feature {
	case "virtual memory management":
		return kind(graphir.AllocVMM)
	case "stream-ordered allocation":
		return kind(graphir.AllocAsync, graphir.AllocPool)
	case "tensor maps":
		return len(s.TensorMaps) > 0
	}
	return false
}

// factors returns the identity of device 0 as restore would see it, or nil without a device.
func (r *Report) factors() artifacts.Identity {
	if r.GPU == nil || len(r.GPU.Devices) == 0 {
		return nil
	}
	return probe.Factors(r.GPU.Driver, r.GPU.Devices[0])
}
