package kernels_test

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"medusa/internal/cuda"
	"medusa/runners/reference/kernels"
	"medusa/test/testenv"
)

func TestNames(t *testing.T) {
	text := map[string]string{}
	for _, m := range kernels.Modules() {
		text[m.Name] = string(m.PTX)
		if m.PTX[len(m.PTX)-1] != 0 {
			t.Errorf("module %s does not end with a zero byte", m.Name)
		}
	}
	named := 0
	for _, s := range []kernels.Storage{kernels.F32, kernels.F16, kernels.BF16} {
		for k := kernels.Embed; k <= kernels.Attention; k++ {
			module, name := kernels.Name(k, s)
			if !strings.Contains(text[module], ".entry "+name+"(") {
				t.Errorf("module %s has no kernel %s", module, name)
			}
			named++
		}
	}
	if entries := len(regexp.MustCompile(`\.entry `).FindAllString(text["llama"]+text["attention"], -1)); entries != named {
		t.Errorf("the modules have %d kernels, %d have names", entries, named)
	}
	_, name := kernels.Name(kernels.Attention, kernels.F32)
	size := regexp.MustCompile(regexp.QuoteMeta(name) + `_param_0\[(\d+)\]`).FindStringSubmatch(text["attention"])
	if kernels.AttentionArgsSize != 80 || size == nil || size[1] != "80" {
		t.Errorf("AttentionArgs has %d bytes, the kernel's parameter %v", kernels.AttentionArgsSize, size)
	}
}

// The committed PTX equals the compiled sources, if the compiler is at hand.
func TestPTXIsCurrent(t *testing.T) {
	clang, err := exec.LookPath("clang++-19")
	if err != nil {
		testenv.Skip(t, testenv.Clang)
	}
	rules, err := os.ReadFile("../rules.mk")
	must(t, err)
	flags := regexp.MustCompile(`(?m)^PTX_FLAGS = (.*)$`).FindSubmatch(rules)
	if flags == nil {
		t.Fatal("rules.mk has no PTX_FLAGS")
	}
	sources, err := filepath.Glob("*.cu")
	must(t, err)
	blas, err := filepath.Glob("../blas/kernels/*.cu")
	must(t, err)
	if len(sources) != 2 || len(blas) != 4 {
		t.Fatalf("found sources %v %v", sources, blas)
	}
	for _, source := range append(sources, blas...) {
		args := strings.Fields(strings.ReplaceAll(string(flags[1]), "-Irunners/reference/kernels", "-I."))
		got, err := exec.Command(clang, append(args, "-o", "-", source)...).Output()
		must(t, err)
		want, err := os.ReadFile(strings.TrimSuffix(source, ".cu") + ".ptx")
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the committed PTX is not what it compiles to (run make ptx)", source)
		}
	}
}

func TestCopies(t *testing.T) {
	onDevice(t, func(t *testing.T, d *device) {
		for _, hidden := range []int{72, 1, 30, 67} {
			table := noise(10*hidden, 1)
			for _, k := range []kernels.Kernel{kernels.Embed, kernels.GatherRows} {
				rows, out := d.ints(7, 0, 7, 9), d.blank(4*hidden)
				args := cuda.NewArgs()
				if k == kernels.Embed {
					args.Ptr(rows).Ptr(d.elements(table))
				} else {
					args.Ptr(d.elements(table)).Ptr(rows)
				}
				d.launch(k, cuda.Dim3{4, 1, 1}, kernels.RowThreads(hidden), args.Ptr(out).I32(hidden))
				var want []float64
				for _, r := range []int{7, 0, 7, 9} {
					want = append(want, table[r*hidden:(r+1)*hidden]...)
				}
				d.same("rows", d.read(out, 4*hidden), want)
			}
		}
	})
}

func TestNorms(t *testing.T) {
	onDevice(t, func(t *testing.T, d *device) {
		for _, hidden := range []int{8, 64, 288, 1032, 1, 50, 67, 1030} {
			const rows, eps = 3, 1e-2
			x, residual, weight := noise(rows*hidden, 2), noise(rows*hidden, 3), noise(hidden, 4)
			norm := func(x []float64) []float64 {
				out := make([]float64, len(x))
				for r := range rows {
					squares := 0.0
					for _, v := range x[r*hidden : (r+1)*hidden] {
						squares += v * v
					}
					for i := range hidden {
						out[r*hidden+i] = x[r*hidden+i] / math.Sqrt(squares/float64(hidden)+eps) * weight[i]
					}
				}
				return out
			}
			grid, threads := cuda.Dim3{rows, 1, 1}, kernels.RowThreads(hidden)
			in, w, out := d.elements(x), d.elements(weight), d.blank(len(x))
			d.launch(kernels.RMSNorm, grid, threads, cuda.NewArgs().Ptr(in).Ptr(w).Ptr(out).I32(hidden).F32(eps))
			d.close("rms_norm", d.read(out, len(x)), norm(x))

			sum := make([]float64, len(x))
			for i := range sum {
				sum[i] = residual[i] + x[i]
			}
			res := d.elements(residual)
			d.launch(kernels.AddRMSNorm, grid, threads, cuda.NewArgs().Ptr(res).Ptr(in).Ptr(w).Ptr(out).I32(hidden).F32(eps))
			d.close("residual", d.read(res, len(x)), sum)
			d.close("add_rms_norm", d.read(out, len(x)), norm(sum))
		}
	})
}

func TestSiLUMul(t *testing.T) {
	onDevice(t, func(t *testing.T, d *device) {
		for _, width := range []int{8, 176, 1032, 1, 86, 171} {
			in := noise(2*2*width, 5)
			for i := range in {
				in[i] *= 16
			}
			in[0], in[1] = 200, -200
			in = d.rounded(in)
			want := make([]float64, 2*width)
			for i := range want {
				gate, up := in[i/width*2*width+i%width], in[i/width*2*width+width+i%width]
				want[i] = gate / (1 + math.Exp(-gate)) * up
			}
			out := d.blank(len(want))
			d.launch(kernels.SiLUMul, cuda.Dim3{2, 1, 1}, kernels.RowThreads(width),
				cuda.NewArgs().Ptr(d.elements(in)).Ptr(out).I32(width))
			d.close("silu_mul", d.read(out, len(want)), want)
		}
	})
}

func TestArgmax(t *testing.T) {
	onDevice(t, func(t *testing.T, d *device) {
		const vocab = 515
		nan, inf := math.NaN(), math.Inf(1)
		row := func(fill float64, set map[int]float64) []float64 {
			out := make([]float64, vocab)
			for i := range out {
				out[i] = fill
			}
			for i, v := range set {
				out[i] = v
			}
			return out
		}
		cases := []struct {
			name string
			row  []float64
			want int32
		}{
			{"last", row(-3, map[int]float64{514: 1}), 514},
			{"tie in one warp", row(0, map[int]float64{9: 2, 17: 2}), 9},
			{"tie in one lane", row(0, map[int]float64{5 + 128: 2, 5: 2}), 5},
			{"tie across warps", row(0, map[int]float64{131: 2, 40: 2}), 40},
			{"all equal", row(-1, nil), 0},
			{"NaN beside a number", row(nan, map[int]float64{300: -5}), 300},
			{"all NaN", row(nan, nil), 0},
			{"all minus infinity", row(-inf, nil), 0},
			{"infinity", row(1, map[int]float64{77: inf}), 77},
		}
		var in []float64
		for _, c := range cases {
			in = append(in, c.row...)
		}
		out := d.ints(make([]int32, len(cases))...)
		d.launch(kernels.Argmax, cuda.Dim3{uint32(len(cases)), 1, 1}, kernels.ArgmaxThreads,
			cuda.NewArgs().Ptr(d.elements(in)).Ptr(out).I32(vocab))
		got := d.readInts(out, len(cases))
		for i, c := range cases {
			if got[i] != c.want {
				t.Errorf("%s: token %d, want %d", c.name, got[i], c.want)
			}
		}
	})
}
