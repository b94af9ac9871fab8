package main

// attack has rows for what an attacker had found open: make attack, a small run of it at least, has to find it open again.
var attack = []mutant{
	{
		"attack: recorded paths are not written to", "artifacts/layer/caches.go",
		"return found && Variable", "return true || found && Variable",
		"./internal/test/attack", "TestAttack/archives",
	}, {
		"attack: the cache is believed for its bytes", "artifacts/store/checked.go",
		"; got != digits {", "; got == digits[1:] {",
		"./internal/test/attack", "TestAttack/registry",
	}, {
		"attack: real signatures behind fakes", "artifacts/oci/sign.go",
		"i == maxSignatures ||", "i == 16 ||",
		"./internal/test/attack", "TestAttack/registry",
	}, {
		"attack: a policy that requires signatures", "artifacts/trust/judge.go",
		"case p.Required:", "case p.Required && false:",
		"./internal/test/attack", "TestAttack/policy",
	}, {
		"attack: a signature of this key", "artifacts/trust/judge.go",
		"if err = s.by(k.Public, manifest); err != nil {", "if false {",
		"./internal/test/attack", "TestAttack/policy",
	}, {
		"attack: contents in the engine's memory", "graphir/validate_graph.go",
		"v.spec.Allocations[c.Alloc].Owner == OwnerEngine {", "v.spec.Allocations[c.Alloc].Owner == 0 {",
		"./internal/test/attack", "TestAttack/fallbacks",
	}, {
		"attack: extents of copies and fills", "graphir/validate.go",
		"if p.Offset > whole || size > whole-p.Offset {", "if p.Offset > whole {",
		"./internal/test/attack", "TestAttack/stages",
	}, {
		"attack: graphs that embed themselves", "materialize/recording.go",
		"case child.order >= parent.order:", "case child.order > parent.order:",
		"./internal/test/attack", "TestAttack/traces",
	}, {
		"attack: graphs that embed others twice", "materialize/recording.go",
		"case r.embedded[v.Child]:", "case r.embedded[v.Child] && false:",
		"./internal/test/attack", "TestAttack/traces",
	}, {
		"attack: variables of other runs", "internal/contract/contract.go",
		"!slices.Contains(inherited, name)", "false",
		"./internal/test/attack", "TestAttack/environment",
	}, {
		"attack: engines of killed commands", "interpose/guard.go",
		"if err != nil {\n\t\t\tbreak", "if err != nil {\n\t\t\tselect {}",
		"./internal/test/attack", "TestAttack/kills",
	}, {
		"attack: folders of killed commands", "internal/scratch/scratch.go",
		"!e.IsDir() || !own(e)", "true",
		"./internal/test/attack", "TestAttack/kills",
	}, {
		"attack: escapes in tables", "internal/printable/table.go",
		"args[i] = Line(v)", "args[i] = v",
		"./internal/test/attack", "TestAttack/screens",
	}, {
		"attack: escapes in JSON", "internal/printable/json.go",
		"case r < 0x7f || strconv.IsPrint(r):", "case r < 0x7f || strconv.IsPrint(r) || r > 0:",
		"./internal/test/attack", "TestAttack/screens",
	}, {
		"attack: escapes in the engine's lines", "restore/session.go",
		"s.say(\"native start: %v\", f)", "_, _ = os.Stderr.WriteString(\"medusa: native start: \" + f.Error() + \"\\n\")",
		"./internal/test/attack", "TestAttack/screens",
	}, {
		"attack: a KV cache for its tensors", "artifacts/kv.go",
		"if e.end-e.from > left {", "if e.end-e.from > left && left == 0 {",
		"./artifacts", "TestKVProfileHoldsTheTensors",
	}, {
		"attack: an engine that outgrows its KV cache", "internal/test/zoo/main.go",
		"if given && bytes < used {", "if given && bytes < 1 {",
		"./internal/test/attack", "TestAttack/fallbacks",
	}, {
		"attack: memory inside of other memory", "materialize/liveness.go",
		"if y.addr-x.addr < x.size && !twice {", "if y.addr-x.addr < x.size && !twice && x.size == 0 {",
		"./internal/test/attack", "TestAttack/traces",
	}, {
		"attack: memory that wraps around", "materialize/recording.go",
		"if addr+size >= addr {", "if addr+size >= addr || size > 0 {",
		"./internal/test/attack", "TestAttack/traces",
	}, {
		"attack: words outside of a kernel's layout", "materialize/graphs.go",
		"for o := (from + 7) &^ 7; o+8 <= to; o += 8 {", "for o := (from + 7) &^ 7; o+8 <= from; o += 8 {",
		"./internal/test/attack", "TestAttack/traces",
	}, {
		"attack: pointers beyond 4 GiB of their memory", "materialize/liveness.go",
		"out[0], n = graphir.Pointer{Alloc: last.id, Offset: addr - last.addr, Space", "out[0], n = graphir.Pointer{Alloc: last.id, Offset: uint64(uint32(addr - last.addr)), Space",
		"./internal/test/attack", "TestAttack/traces",
	}, {
		"attack: a disk that is full when the status is written", "restore/supervisor/silent.go",
		"\tif full != nil {", "\tif full != nil && o.Status != \"\" {",
		"./internal/test/attack", "TestAttack/disks",
	},
}
