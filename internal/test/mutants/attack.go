package main

// attack has rows for holes that an attacker had found. make attack, at least a small run of it, has to find each hole that is opened
// again. A small run seldom reaches two of them: the tests of their packages find those.
var attack = []mutant{
	{"paths of strangers are not written to", replace("found &&", "true || found &&"), "./internal/test/attack", "TestAttack/archives"},
	{"bytes of the cache have their digest", never, "./internal/test/attack", "TestAttack/registry"},
	{"all signatures are tried", replace("i == maxSignatures", "i == 16"), "./internal/test/attack", "TestAttack/registry"},
	{"a policy that requires signatures", never, "./internal/test/attack", "TestAttack/policy"},
	{"signature of this manifest", never, "./internal/test/attack", "TestAttack/policy"},
	{"contents in the engine's memory", replace("== OwnerEngine", "== 0"), "./internal/test/attack", "TestAttack/fallbacks"},
	{"extent of a pointer", replace(" || size > whole-p.Offset", ""), "./graphir", "TestValidateExtents"},
	{"graph that embeds itself", replace(">=", ">"), "./internal/test/attack", "TestAttack/traces"},
	{"graph that two nodes embed", never, "./internal/test/attack", "TestAttack/traces"},
	{"variables of single runs", replace("!slices.Contains(inherited, name)", "false"), "./internal/test/attack", "TestAttack/environment"},
	{"guard notices the end of its command", becomes("select {}"), "./internal/test/attack", "TestAttack/kills"},
	{"folders of killed commands", always, "./internal/test/attack", "TestAttack/kills"},
	{"names in tables are text", replace("Line(v)", "v"), "./internal/test/attack", "TestAttack/screens"},
	{"escapes in JSON", always, "./internal/test/attack", "TestAttack/screens"},
	{"escapes in the engine's lines", becomes(`println("medusa: native start: " + f.Error())`),
		"./internal/test/attack", "TestAttack/screens"},
	{"KV cache large enough for its tensors", never, "./artifacts", "TestKVProfileHoldsTheTensors"},
	{"engine that outgrows its KV cache", never, "./internal/test/attack", "TestAttack/fallbacks"},
	{"memory inside of other memory", never, "./internal/test/attack", "TestAttack/traces"},
	{"memory that wraps around", always, "./internal/test/attack", "TestAttack/traces"},
	{"words beside a layout are compared", never, "./internal/test/attack", "TestAttack/traces"},
	{"pointers beyond 4 GiB of their memory", replace("addr - last.Addr", "uint64(uint32(addr - last.Addr))"),
		"./internal/test/attack", "TestAttack/traces"},
	{"a disk that is full when the status is written", replace("full != nil", `full != nil && o.Status != ""`),
		"./internal/test/attack", "TestAttack/disks"},
}
