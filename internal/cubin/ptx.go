package cubin

import (
	"bytes"
	"strconv"
	"strings"
)

// looksLikePTX reports whether the text begins, after comments, with the directive that begins every PTX module.
func looksLikePTX(text []byte) bool {
	t := &tokens{text: text}
	return t.next() == ".version"
}

// parsePTX reads the declarations of a PTX module: its target, entries with their parameters, and module variables. It skips
// bodies. The final NUL that load calls need may be missing.
func parsePTX(text []byte) (Object, error) {
	o := Object{Kind: PTX}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	t := &tokens{text: text}
	if t.next() != ".version" {
		return o, bad("PTX", 0, "no .version at the start")
	}
	for {
		at := uint64(t.at)
		switch word := t.next(); word {
		case "":
			return o, nil
		case ".target":
			o.Arch = targetArch(t.next())
		case ".entry":
			k, err := readEntry(t)
			if err != nil {
				return o, err
			}
			o.Kernels = append(o.Kernels, k)
		case ".global", ".const":
			g, err := readVariable(t, word == ".const", at)
			if err != nil {
				return o, err
			}
			if !t.extern {
				o.Globals = append(o.Globals, g)
			}
		case ".extern":
			t.extern = true
			continue
		case "{":
			if !t.skipBlock() {
				return o, bad("PTX", at, "a block without an end")
			}
		case ".visible", ".weak", ".common":
			continue // a qualifier before the declaration
		}
		t.extern = false
	}
}

// targetArch turns sm_90a into 90.
func targetArch(target string) uint32 {
	digits := strings.TrimRight(strings.TrimPrefix(target, "sm_"), "abcdefghijklmnopqrstuvwxyz,")
	n, _ := strconv.ParseUint(digits, 10, 16)
	return uint32(n)
}

func readEntry(t *tokens) (Kernel, error) {
	at := uint64(t.at)
	k := Kernel{Name: t.next()}
	if k.Name == "" || !isName(k.Name) {
		return k, bad("PTX", at, "an entry without a name")
	}
	if t.peek() != "(" {
		return k, nil
	}
	t.next()
	end := uint64(0)
	for {
		at := uint64(t.at)
		switch word := t.next(); word {
		case ")":
			return k, nil
		case ",":
		case ".param":
			d, ok := readDeclaration(t)
			if !ok || d.align == 0 || d.count == 0 {
				return k, bad("PTX", at, "a parameter of entry %s", k.Name)
			}
			offset := (end + d.align - 1) / d.align * d.align
			size := d.width * d.count
			if end = offset + size; end > 1<<20 {
				return k, bad("PTX", at, "entry %s takes more than %d bytes of parameters", k.Name, 1<<20)
			}
			k.Params = append(k.Params, Param{uint32(offset), uint32(size)})
		default:
			return k, bad("PTX", at, "%q among the parameters of entry %s", word, k.Name)
		}
	}
}

func readVariable(t *tokens, constant bool, at uint64) (Global, error) {
	d, ok := readDeclaration(t)
	if !ok {
		return Global{}, bad("PTX", at, "a module variable")
	}
	for word := t.next(); word != ";"; word = t.next() { // skip an initial value
		if word == "" {
			return Global{}, bad("PTX", at, "module variable %s without an end", d.name)
		}
		if word == "{" && !t.skipBlock() {
			return Global{}, bad("PTX", at, "module variable %s without an end", d.name)
		}
	}
	return Global{Name: d.name, Size: d.width * d.count, Constant: constant}, nil
}

// declaration is a variable or a parameter: .align 8 .b8 name[24].
type declaration struct {
	name                string
	align, width, count uint64
}

var widths = map[string]uint64{
	".u8": 1, ".s8": 1, ".b8": 1, ".u16": 2, ".s16": 2, ".b16": 2, ".f16": 2, ".bf16": 2, ".u32": 4, ".s32": 4, ".b32": 4, ".f32": 4,
	".f16x2": 4, ".bf16x2": 4, ".u64": 8, ".s64": 8, ".b64": 8, ".f64": 8, ".b128": 16,
	".texref": 8, ".samplerref": 8, ".surfref": 8,
}

// readDeclaration reads up to and including the name and its dimensions.
func readDeclaration(t *tokens) (d declaration, ok bool) {
	align := uint64(0)
	vector := uint64(1)
	for {
		word := t.next()
		switch {
		case word == ".align":
			n, err := strconv.ParseUint(t.next(), 10, 8)
			if err != nil {
				return d, false
			}
			align = n
		case word == ".v2":
			vector = 2
		case word == ".v4":
			vector = 4
		case widths[word] != 0:
			d.width = widths[word]
		case word == ".ptr" || word == ".global" || word == ".const" || word == ".shared" || word == ".local" || strings.HasPrefix(word, ".attribute"):
			// the kind of memory that a pointer points to
		case word == "(" || word == ")":
			// part of an attribute
		case word == ".managed" || word == ".unified":
		case isName(word):
			d.name, d.count = word, vector
			d.align = max(align, d.width*vector)
			if align != 0 && d.width == 1 {
				d.align = align
			}
			return d, readDimensions(t, &d) && d.width != 0
		default:
			return d, false
		}
	}
}

func readDimensions(t *tokens, d *declaration) bool {
	for t.peek() == "[" {
		t.next()
		n := uint64(0)
		if t.peek() != "]" {
			var err error
			if n, err = strconv.ParseUint(t.next(), 0, 40); err != nil {
				return false
			}
		}
		if t.next() != "]" || (n != 0 && d.count > (1<<50)/n) {
			return false
		}
		d.count *= n
	}
	return true
}

func isName(word string) bool {
	c := word
	return c != "" && (c[0] == '_' || c[0] == '$' || c[0] == '%' || c[0] >= 'a' && c[0] <= 'z' || c[0] >= 'A' && c[0] <= 'Z')
}
