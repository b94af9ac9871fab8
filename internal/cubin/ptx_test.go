package cubin

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const samplePTX = `
// .entry in_a_comment()
/* .version 1.0 */
.version 7.8
.target sm_90a, debug
.address_size 64

.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .global .align 4 .b8 elsewhere[8];
.global .align 4 .u32 counter = 7;
.visible .const .align 8 .b8 table[16] = {1, 2, 3};
.visible .global .align 8 .u64 pointers[2] = {generic(counter), 0};
.global .align 1 .b8 unused[1];
.global .attribute(.managed) .align 4 .u32 shared_with_host;
.global .align 16 .v4 .f32 vectors[3];

.visible .entry kernel(
	.param .u64 .ptr .global .align 16 out,
	.param .align 8 .b8 by_value[24],
	.param .u8 flag,
	.param .f32 scale
)
.maxntid 128, 1, 1
{
	.reg .b32 %r<4>;
	ld.global.u32 %r1, [counter];
	{ st.global.u32 [pointers], %r1; }
	call (r), vprintf, (f, "{ not a block: shared_with_host }");
	ret;
}

.weak .entry none()
{
	ret;
}
.func helper(.param .b32 x)
{
	ret;
}
`

func TestPTX(t *testing.T) {
	want := Object{Kind: PTX, Arch: 90,
		Kernels: []Kernel{{"kernel", []Param{{0, 8}, {8, 24}, {32, 1}, {36, 4}}}, {"none", nil}},
		Globals: []Global{{"counter", 4, false}, {"table", 16, true}, {"pointers", 16, false}, {"unused", 1, false}, {"shared_with_host", 4, false},
			{"vectors", 48, false}}}
	for _, text := range []string{samplePTX, samplePTX + "\x00garbage"} {
		if d := cmp.Diff(want, parseOne(t, []byte(text))); d != "" {
			t.Error(d)
		}
	}
}

func TestPTXErrors(t *testing.T) {
	for name, tt := range map[string][2]string{
		"block without an end":      {".version 8.0 .entry k() { ret;", "a block without an end"},
		"entry without a name":      {".version 8.0 .entry (", "an entry without a name"},
		"parameter of no type":      {".version 8.0 .entry k(.param p)", "a parameter of entry k"},
		"no parameter":              {".version 8.0 .entry k(.reg .u32 p)", "among the parameters"},
		"huge parameter":            {".version 8.0 .entry k(.param .b8 p[4000000])", "more than"},
		"parameters without an end": {".version 8.0 .entry k(.param .u64 p", "among the parameters"},
		"variable without an end":   {".version 8.0 .global .u32 x = 5", "without an end"},
		"variable without a type":   {".version 8.0 .global x;", "a module variable"},
		"huge variable":             {".version 8.0 .global .u64 x[1000000000000][1000000000000];", "a module variable"},
	} {
		_, err := Parse([]byte(tt[0]))
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), tt[1]) {
			t.Errorf("%s: want %q, got %v", name, tt[1], err)
		}
	}
}
